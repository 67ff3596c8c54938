import { ClassifiedError, errorMessageOf } from "../../providers/errors";
import { reviewOwnAccess } from "../../providers/kubernetes/access-review";
import { refuseProtected, withOwner } from "../../providers/kubernetes/apply-object";
import {
  ApiError,
  FIELD_MANAGER,
  type KubernetesClient,
  type LiveObject,
  type Manifest,
} from "../../providers/kubernetes/client";
import { type Cluster, clusterOf } from "../../providers/kubernetes/cluster";
import { MESSAGES } from "../../providers/kubernetes/messages";
import type { ObjectInputs } from "../../providers/kubernetes/object-inputs";
import { lastingOwnerOf, withLastingOwner } from "../../providers/kubernetes/owner-references";
import { OWNER_UID_LABEL, wasCreated } from "../../providers/kubernetes/ownership";
import type { Lookup } from "../../providers/kubernetes/types";
import { type AnyKind, kindType } from "../../stacks/contract/kind";
import { objectId, objectKey } from "../../stacks/contract/object";
import { watchedObjects } from "../../stacks/contract/watched";

const PROBE_TIMEOUT_MS = 5_000;
/** The field manager of dry runs: a manager without fields, so that no field counts as removed. */
const DRY_RUN_MANAGER = "kindstack-preview";
/** Why nothing is sent as a dry run. */
export const NO_AUTHOR = "the operator has no token of yours for dry runs";

/** The cluster, for a reader whose rights may be limited. */
export class ClusterView {
  #identity: Promise<Cluster | undefined> | undefined;
  readonly #looked = new Map<string, Promise<Lookup>>();
  readonly #allowed = new Map<string, Promise<boolean>>();

  private constructor(
    private readonly client: KubernetesClient | undefined,
    /** Why there is no cluster to look at; `undefined` when there is one. */
    readonly unreachable: string | undefined,
    private readonly author: KubernetesClient | undefined,
  ) {}

  /**
   * Checks once whether the API server answers, so that later reads do not wait for it.
   *
   * @param options with a client that has the rights of the preview's author, which sends the dry runs
   */
  static async open(
    client: KubernetesClient,
    { author }: { author: KubernetesClient | undefined } = { author: client },
  ): Promise<ClusterView> {
    const unreachable = await client
      .json("GET", "/version", { signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) })
      .then(() => undefined, errorMessageOf);
    return unreachable === undefined ? new ClusterView(client, undefined, author) : ClusterView.none(unreachable);
  }

  /** No cluster, and why. */
  static none(why: string): ClusterView {
    return new ClusterView(undefined, why, undefined);
  }

  /** The cluster's name and UID; `undefined` without the right to read them. @throws Error when the cluster does not answer */
  identity(): Promise<Cluster | undefined> {
    this.#identity ??= this.client === undefined ? Promise.resolve(undefined) : clusterOf(this.client);
    return this.#identity;
  }

  /** Looks for the object of a kind that has this name. */
  get(kind: AnyKind, name: string, namespace: string | undefined): Promise<Lookup> {
    const isIn = kind.scope === "Namespaced" && namespace !== undefined;
    return this.look({ ...kindType(kind), metadata: { name, ...(isIn && { namespace }) } });
  }

  /** Looks for the object that a manifest names. */
  look(manifest: Manifest): Promise<Lookup> {
    const id = objectId(manifest);
    const looked = this.#looked.get(id) ?? this.#look(manifest);
    this.#looked.set(id, looked);
    return looked;
  }

  async #look(manifest: Manifest): Promise<Lookup> {
    if (this.client === undefined) return { outcome: "unknown", error: new Error(this.unreachable) };
    return this.client.find(manifest);
  }

  /** Whether anything can be sent as a dry run. */
  get maySend(): boolean {
    return this.author !== undefined;
  }

  /**
   * Sends an object as a dry run, with the rights of the author.
   *
   * @returns the object as it would be
   * @throws ApiError when the API server refuses the object to the author, or the operator lacks the right to apply it
   */
  async dryRun(inputs: ObjectInputs, live: LiveObject | undefined, signal: AbortSignal): Promise<LiveObject> {
    if (this.author === undefined) throw new Error("there is no author");
    const applied = await dryRunApply(this.author, inputs, live, signal);
    const client = this.#reached();
    if (this.author === client || (await this.#may(client, "patch", inputs.manifest))) return applied;
    const { kind, metadata } = inputs.manifest;
    throw new ApiError(422, "Forbidden", `Forbidden: the operator may not apply ${kind} ${objectKey(metadata)}`);
  }

  /** Whether the author may `get` an object that is read with other rights. */
  async mayRead(manifest: Manifest): Promise<boolean> {
    if (this.author === this.client) return true;
    if (this.author === undefined) return false;
    const { namespace } = manifest.metadata;
    const all = { ...manifest, metadata: { ...(namespace !== undefined && { namespace }) } };
    const may = async (one: Manifest) => this.#may(this.author as KubernetesClient, "get", one);
    return (await may(all).catch(() => false)) || (await may(manifest).catch(() => false));
  }

  async #may(client: KubernetesClient, verb: string, { apiVersion, kind, metadata }: Manifest): Promise<boolean> {
    const { plural: resource } = await this.#reached().resourceType(apiVersion, kind);
    const [group = "", version = ""] = apiVersion.includes("/") ? apiVersion.split("/") : ["", apiVersion];
    const { name, namespace = kind === "Namespace" ? name : undefined } = metadata; // as a Role may give the right, too
    const attributes = { verb, group, version, resource, name, namespace };
    const id = JSON.stringify(attributes);
    const asked = this.#allowed.get(id) ?? reviewOwnAccess(client, attributes);
    this.#allowed.set(id, asked);
    return asked;
  }

  /** The objects of a kind. @throws Error when they cannot be read */
  async list(kind: AnyKind, namespace: string | undefined, labelSelector?: string): Promise<LiveObject[]> {
    const where = kind.scope === "Namespaced" ? namespace : undefined;
    return (await this.#reached().list(kindType(kind), { namespace: where, labelSelector })).items;
  }

  /** The live objects that a kind's object owns; `undefined` when they cannot be read. */
  owned(kind: AnyKind, { uid, namespace }: LiveObject["metadata"]): Promise<LiveObject[] | undefined> {
    return this.#tryTo(async (client) => {
      // Only in its namespace: users can set that label on their own objects.
      const selection = { labelSelector: `${OWNER_UID_LABEL}=${uid}`, namespace };
      const lists = await Promise.all(kind.owns.map((type) => client.list(type, selection)));
      return lists.flatMap(({ items }) => items);
    });
  }

  /** The objects that a kind watches for the object of this key; `undefined` when they cannot be read. */
  watched(kind: AnyKind, key: string): Promise<LiveObject[] | undefined> {
    return this.#tryTo((client) => watchedObjects(client, kind, key));
  }

  /** What a type is called in paths. @throws ApiError 404 when it is not served */
  async pluralOf({ apiVersion, kind }: Manifest): Promise<string> {
    return (await this.#reached().resourceType(apiVersion, kind)).plural;
  }

  /** The quotas of a namespace; `undefined` when the author may not read them. */
  async quotas(namespace: string, signal: AbortSignal): Promise<LiveObject[] | undefined> {
    const quotas = this.author?.list({ apiVersion: "v1", kind: "ResourceQuota" }, { namespace, signal });
    return quotas?.then(({ items }) => items).catch(() => undefined);
  }

  /** Validates by a dry run of an apply, with the rights of the author: schema, CEL rules, admission. */
  async validate(manifest: Manifest): Promise<Verdict> {
    if (this.unreachable !== undefined) return { type: "unknown", why: this.unreachable };
    if (this.author === undefined) return { type: "unknown", why: NO_AUTHOR };
    const { status: _, metadata, ...rest } = manifest;
    const { uid, resourceVersion, generation, creationTimestamp, managedFields, ...written } = metadata;
    try {
      const dryRun = { dryRun: true, fieldManager: DRY_RUN_MANAGER };
      await this.author.apply({ ...rest, metadata: written } as Manifest, dryRun);
      return { type: "valid" };
    } catch (error) {
      return verdictOf(error);
    }
  }

  #reached(): KubernetesClient {
    if (this.client === undefined) throw new Error(this.unreachable);
    return this.client;
  }

  async #tryTo<T>(read: (client: KubernetesClient) => Promise<T>): Promise<T | undefined> {
    return this.client && read(this.client).catch(() => undefined);
  }
}

/** What the API server says of a manifest. */
export type Verdict = { type: "valid" } | { type: "invalid"; message: string } | { type: "unknown"; why: string };

/** The prefix of reasons about missing rights, which are the same for all objects. */
export const NO_RIGHT = "no right: ";

/** The meaning of a dry run's error: a refusal of the object, or a dry run that could not be sent. */
export function verdictOf(error: unknown): Verdict {
  const message = errorMessageOf(error);
  if (!(error instanceof ApiError)) {
    const isRefused = error instanceof ClassifiedError && error.errorClass === "terminal";
    return isRefused ? { type: "invalid", message: `${error.reason}: ${message}` } : { type: "unknown", why: message };
  }
  if (MESSAGES.noDryRun.test(message)) return { type: "unknown", why: message };
  // The right is the caller's, who may lack it where the operator has it.
  const lacksRight = error.status === 403 && (MESSAGES.noRight.test(message) || MESSAGES.escalation.test(message));
  if (lacksRight) return { type: "unknown", why: `${NO_RIGHT}${message}` };
  const isRefused = [400, 403, 413, 422].includes(error.status) || MESSAGES.denied.test(message);
  return isRefused ? { type: "invalid", message } : { type: "unknown", why: message };
}

/** Asks the API server to do all of an apply but to keep its result, which is returned. @throws ApiError when it is refused */
async function dryRunApply(
  client: KubernetesClient,
  inputs: ObjectInputs,
  live: LiveObject | undefined,
  signal: AbortSignal,
): Promise<LiveObject> {
  refuseProtected(inputs.manifest);
  const { manifest, fieldManager = FIELD_MANAGER }: { manifest: Manifest; fieldManager?: string } =
    (live === undefined && inputs.initial) || inputs;
  const lasting = withLastingOwner(manifest, lastingOwnerOf(live));
  const applied = withOwner({ ...inputs, manifest: lasting }, live, live === undefined || wasCreated(live), undefined);
  return (await client.apply(applied, { dryRun: true, signal, fieldManager })).object;
}
