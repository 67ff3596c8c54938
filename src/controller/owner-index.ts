import { type ApiError, FIELD_MANAGER, isUnknownKind, type LiveObject } from "../../providers/kubernetes/client";
import { OWNER_ANNOTATION, OWNER_UID_LABEL, ownerUidOf } from "../../providers/kubernetes/ownership";
import { unknownKind } from "../../providers/kubernetes/type-absence";
import { type AnyKind, ownerDescription } from "../../stacks/contract/kind";
import { objectId, objectKey, parseObjectId } from "../../stacks/contract/object";
import { type ObjectChange, statesOf } from "../cache/change";
import type { Informer } from "../cache/informer";
import type { InformerFactory } from "../cache/informer-factory";
import type { WorkQueue } from "../queue/work-queue";
import type { Claims } from "./claims";
import type { CachedView } from "./kind-cache";
import type { ObjectItem } from "./object-item";

/** Delay from a change to the reconcile, where the reconcile can wait: a burst of changes is one reconcile. */
export const BURST_DELAY_MS = 25;
const UID_INDEX = "uid";
const DESCRIPTION_INDEX = "description";

/** Who owns what: the objects of all kinds by their UID, and informers of all that they own. */
export class OwnerIndex {
  readonly #owners = new Map<string, ObjectItem>();
  /** By {@link ownerDescription}. */
  readonly #byDescription = new Map<string, ObjectItem>();
  /** By `<apiVersion>/<kind>`; kinds that own the same type share one. */
  readonly #informers = new Map<string, Informer>();

  /** @param queue gets the owner of what changes @param claims is told of what is not owned any more */
  constructor(
    private readonly factory: InformerFactory,
    private readonly queue: Pick<WorkQueue<ObjectItem>, "addAfter">,
    private readonly claims: Pick<Claims, "released">,
  ) {}

  /** Watches objects of a type that have an owner, for all kinds that own the type. */
  async watch({ apiVersion, kind }: { apiVersion: string; kind: string }): Promise<Informer> {
    const name = `${apiVersion}/${kind}`;
    const known = this.#informers.get(name);
    if (known !== undefined) return known;
    const informer = await this.factory.create(
      { apiVersion, kind },
      {
        labelSelector: OWNER_UID_LABEL,
        indexers: {
          [UID_INDEX]: (object) => [ownerUidOf(object) ?? ""],
          [DESCRIPTION_INDEX]: ({ metadata }) => [metadata.annotations?.[OWNER_ANNOTATION] ?? ""],
        },
        transform: withOwnManagedFields,
        onChange: (change) => this.#ownedChanged(change),
      },
    );
    this.#informers.set(name, informer);
    return informer;
  }

  set(uid: string, owner: ObjectItem): void {
    this.#owners.set(uid, owner);
    this.#byDescription.set(ownerDescription(owner.kind, owner.key), owner);
  }

  drop(uid: string): void {
    const owner = this.#owners.get(uid);
    if (owner === undefined) return;
    this.#owners.delete(uid);
    const description = ownerDescription(owner.kind, owner.key);
    if (this.#byDescription.get(description) === owner) this.#byDescription.delete(description);
  }

  get(uid: string): ObjectItem | undefined {
    return this.#owners.get(uid);
  }

  /** How to call the object of this UID in a message. */
  describe(uid: string): string | undefined {
    const owner = this.#owners.get(uid);
    return owner && `${owner.kind.kind} ${owner.key}`;
  }

  /**
   * The live resources of the object with this UID, and resources that `pulumi up` or a predecessor of the same name has made in
   * the same stack: the next update takes these over.
   *
   * Ownership labels set by users are trusted only inside their own namespace: resources of a namespaced object are in its
   * namespace, or recorded by its stack.
   *
   * @param recorded ids of the stack's resources
   */
  owned(kind: AnyKind, uid: string, recorded: ReadonlySet<string>): LiveObject[] {
    const owner = this.#owners.get(uid);
    const description = owner && ownerDescription(kind, owner.key);
    return kind.owns.flatMap(({ apiVersion, kind: type }) => {
      const informer = this.#informers.get(`${apiVersion}/${type}`);
      const inherited = description === undefined ? [] : (informer?.byIndex(DESCRIPTION_INDEX, description) ?? []);
      return [
        ...(informer?.byIndex(UID_INDEX, uid) ?? []),
        ...inherited.filter((object) => ownerUidOf(object) !== uid),
      ].filter(
        (object) =>
          kind.scope === "Cluster" ||
          object.metadata.namespace === owner?.namespace ||
          recorded.has(objectId({ ...object, apiVersion, kind: type })),
      );
    });
  }

  /** What the caches show of an owned object, by its id; `undefined` when its type is not watched. */
  view(id: string): CachedView | undefined {
    return viewIn(this.#informers, id);
  }

  /** See {@link KindCache.unserved}. */
  unserved(id: string): ApiError | undefined {
    const { apiVersion, kind } = parseObjectId(id);
    const informer = this.#informers.get(`${apiVersion}/${kind}`);
    if (informer === undefined) return unknownKind({ apiVersion, kind });
    return isUnknownKind(informer.refusal) ? informer.refusal : undefined;
  }

  /** The owners before and after the change are reconciled; they will see whether anything is to be done. */
  #ownedChanged(change: ObjectChange): void {
    const before = change.type === "added" ? undefined : ownerUidOf(change.previous);
    const after = change.type === "deleted" ? undefined : ownerUidOf(change.object);
    if (before !== undefined && before !== after) this.claims.released(objectId(change.object));
    const delayMs = change.type === "deleted" ? 0 : BURST_DELAY_MS; // what users have lost is to be back soon
    for (const owner of new Set(statesOf(change).map((state) => this.#ownerOf(state)))) {
      if (owner !== undefined) this.queue.addAfter(owner, delayMs);
    }
  }

  /** Who owns an object; else who has its owner's name now and may wait for it to go. */
  #ownerOf(object: LiveObject): ObjectItem | undefined {
    const owner = this.#owners.get(ownerUidOf(object) ?? "");
    return owner ?? this.#byDescription.get(object.metadata.annotations?.[OWNER_ANNOTATION] ?? "");
  }
}

/** What informers show of an object, by its id. @param informers by `<apiVersion>/<kind>` */
export function viewIn(informers: ReadonlyMap<string, Informer>, id: string): CachedView | undefined {
  const { apiVersion, kind, ...metadata } = parseObjectId(id);
  const informer = informers.get(`${apiVersion}/${kind}`);
  return informer && { object: informer.get(objectKey(metadata)), cacheVersion: informer.resourceVersion };
}

/** Of owned objects Kindstack's own entry is kept: drift shows in it. */
function withOwnManagedFields(object: LiveObject): LiveObject {
  const managedFields = object.metadata.managedFields?.filter(({ manager }) => manager === FIELD_MANAGER) ?? [];
  return { ...object, metadata: { ...object.metadata, managedFields } };
}
