import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import { errorMessageOf, RetryableError } from "../../providers/errors";
import { type KubernetesClient, known, type Manifest } from "../../providers/kubernetes/client";
import { ownedFieldsDigest } from "../../providers/kubernetes/ownership";
import { ADMISSION_LABEL } from "../../stacks/contract/admission";
import { objectId } from "../../stacks/contract/object";
import type { ObjectChange } from "../cache/change";
import { Informer } from "../cache/informer";
import { exponentialBackoff } from "../queue/backoff";

interface EnsuredObjectsOptions {
  client: Pick<KubernetesClient, "resourceType" | "get" | "apply" | "list" | "watch" | "revision">;
  /** The objects as they are to be, in the order in which they are made. Asked again at every {@link EnsuredObjects.apply}. */
  manifests: () => readonly Manifest[];
  /**
   * The ClusterRole that owns the objects: deleting the role deletes them. The role is read before each object is applied:
   * without the role, the installation is being removed, and nothing is applied any more.
   */
  ownerRole?: string | undefined;
  logger: Logger;
  signal: AbortSignal;
}

/** The last applied version of an object: the event of that version causes no repair. */
interface Applied {
  manifest: Manifest;
  uid: string;
  /** Of our fields; it changes when another manager takes one. */
  fields: string;
}

const CLUSTER_ROLE = { apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole" } as const;
/** Delay of a repair, so that several edits in a row cause one. */
const REPAIR_DELAY_MS = 100;
const BACKOFF = { baseMs: 500, capMs: 30_000 };

/** Keeps cluster-wide objects as they should be while it runs. */
export class EnsuredObjects {
  readonly #applied = new Map<string, Applied>();
  /** Objects to repair in a moment. */
  readonly #pending = new Set<string>();

  constructor(private readonly options: EnsuredObjectsOptions) {}

  /** Applies all objects, in their order. @throws ApiError when one is refused */
  async apply(): Promise<void> {
    for (const manifest of this.options.manifests()) await this.#apply(manifest);
  }

  /** From now on, restores applied objects that are changed or deleted. */
  async watch(): Promise<void> {
    const { client, logger, signal } = this.options;
    const types = new Map<string, Manifest>();
    for (const { manifest } of this.#applied.values()) types.set(`${manifest.apiVersion}/${manifest.kind}`, manifest);
    for (const { apiVersion, kind } of types.values()) {
      const informer = new Informer({
        client,
        type: await client.resourceType(apiVersion, kind),
        labelSelector: ADMISSION_LABEL,
        logger,
        onChange: (change) => this.#changed(change),
      });
      void informer.start(signal);
      await informer.synced;
      // An object that was deleted between apply and list causes no event.
      for (const [id, { manifest }] of this.#applied) {
        if (manifest.kind === kind && informer.get(manifest.metadata.name ?? "") === undefined) void this.#repair(id);
      }
    }
  }

  async #ownerReferences(): Promise<Pick<Manifest["metadata"], "ownerReferences">> {
    const { client, ownerRole } = this.options;
    if (ownerRole === undefined) return {};
    const role = await known(client.get(CLUSTER_ROLE, ownerRole));
    if (role === undefined) {
      const message = `there is no ClusterRole ${ownerRole}, with which admission is installed`;
      throw new RetryableError("OwnerMissing", message);
    }
    return { ownerReferences: [{ ...CLUSTER_ROLE, name: ownerRole, uid: role.metadata.uid }] };
  }

  async #apply(manifest: Manifest): Promise<void> {
    const { metadata } = manifest;
    const labels = { ...metadata.labels, "app.kubernetes.io/managed-by": "kindstack", [ADMISSION_LABEL]: "true" };
    const { object } = await this.options.client.apply({
      ...manifest,
      metadata: { ...metadata, ...(await this.#ownerReferences()), labels },
    });
    const { uid } = object.metadata;
    this.#applied.set(objectId(manifest), { manifest, uid, fields: ownedFieldsDigest(object) });
  }

  #changed({ type, object }: ObjectChange): void {
    const id = objectId(object);
    const applied = this.#applied.get(id);
    if (applied === undefined) return;
    const isAsApplied = object.metadata.uid === applied.uid && ownedFieldsDigest(object) === applied.fields;
    if (type === "deleted" || !isAsApplied) void this.#repair(id);
  }

  async #repair(id: string): Promise<void> {
    const { logger, signal, manifests } = this.options;
    for (let failures = 0; !this.#pending.has(id); failures++) {
      this.#pending.add(id);
      const wait = failures === 0 ? REPAIR_DELAY_MS : exponentialBackoff(failures, BACKOFF);
      await delay(wait, undefined, { signal, ref: false }).catch(() => {});
      this.#pending.delete(id); // a change from here on needs another repair
      if (signal.aborted) return;
      // As it is to be now; a renewed certificate may have changed it.
      const manifest = manifests().find((candidate) => objectId(candidate) === id);
      if (manifest === undefined) return;
      try {
        await this.#apply(manifest);
        logger.info({ object: id }, "restored an admission object");
        return;
      } catch (error) {
        logger.warn({ err: error, object: id, reason: errorMessageOf(error) }, "failed to restore an admission object");
      }
    }
  }
}
