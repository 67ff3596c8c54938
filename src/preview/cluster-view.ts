import { errorMessageOf } from "../../providers/errors";
import {
  ApiError,
  isApiError,
  type KubernetesClient,
  type LiveObject,
  type Manifest,
} from "../../providers/kubernetes/client";
import { type Cluster, clusterOf } from "../../providers/kubernetes/cluster";
import { OWNER_UID_LABEL } from "../../providers/kubernetes/ownership";
import { type AnyKind, kindType } from "../../stacks/contract/kind";
import { watchedObjects } from "../../stacks/contract/watched";

/** What the API server says of a manifest. */
export type Validation = { type: "valid" } | { type: "invalid"; message: string } | { type: "unknown"; why: string };

const PROBE_TIMEOUT_MS = 5_000;
/** The field manager of dry runs: one that owns no fields, so that none count as removed. */
const DRY_RUN_MANAGER = "kindstack-preview";

/** The cluster, for a reader whose rights may be limited. */
export class ClusterView {
  readonly #client: KubernetesClient | undefined;
  #identity: Promise<Cluster | undefined> | undefined;

  private constructor(
    client: KubernetesClient | undefined,
    /** Why there is no cluster to look at; `undefined` when there is one. */
    readonly unreachable: string | undefined,
  ) {
    this.#client = client;
  }

  /** Checks once whether the API server answers, so that later reads do not wait for it. */
  static async open(client: KubernetesClient): Promise<ClusterView> {
    const unreachable = await client
      .json("GET", "/version", { signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) })
      .then(() => undefined, errorMessageOf);
    return unreachable === undefined ? new ClusterView(client, undefined) : ClusterView.none(unreachable);
  }

  /** No cluster, and why. */
  static none(why: string): ClusterView {
    return new ClusterView(undefined, why);
  }

  /** What tells the cluster from others; `undefined` when that cannot be read. */
  identity(): Promise<Cluster | undefined> {
    this.#identity ??= this.#tryTo(clusterOf);
    return this.#identity;
  }

  /** The object of a kind that has this name. @throws Error as {@link look} */
  find(kind: AnyKind, name: string, namespace: string | undefined): Promise<LiveObject | undefined> {
    const metadata = { name, ...(namespace !== undefined && { namespace }) };
    return this.look({ ...kindType(kind), metadata });
  }

  /** The object that a manifest names; `undefined` when there is none. @throws Error when that cannot be told */
  async look(manifest: Manifest): Promise<LiveObject | undefined> {
    try {
      return await this.#reached().find(manifest);
    } catch (error) {
      // Where the type is not installed, there is no object of it.
      if (isApiError(error, 404)) return undefined;
      throw error;
    }
  }

  /** The objects of a kind. @throws Error when they cannot be read */
  async list(kind: AnyKind, namespace: string | undefined, labelSelector?: string): Promise<LiveObject[]> {
    return (await this.#reached().list(kindType(kind), { namespace, labelSelector })).items;
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

  /** What a kind observes for the object of this key; `undefined` when that cannot be read. */
  observed(kind: AnyKind, key: string): Promise<LiveObject[] | undefined> {
    return this.#tryTo((client) => watchedObjects(client, kind, key));
  }

  /** Validates by a dry run of an apply: schema, CEL rules, admission. */
  async validate(manifest: Manifest): Promise<Validation> {
    const { status: _, metadata, ...rest } = manifest;
    const { uid, resourceVersion, generation, creationTimestamp, managedFields, ...written } = metadata;
    try {
      const dryRun = { dryRun: true, fieldManager: DRY_RUN_MANAGER };
      await this.#reached().apply({ ...rest, metadata: written } as Manifest, dryRun);
      return { type: "valid" };
    } catch (error) {
      const message = errorMessageOf(error);
      // Fields that the schema does not have, and duplicate items, are reported as an error of the server.
      // A policy's refusal has the status of a missing permission.
      const refused =
        error instanceof ApiError &&
        ([400, 422].includes(error.status) ||
          /not declared in schema|duplicate entries|denied (the )?request/.test(message));
      return refused ? { type: "invalid", message } : { type: "unknown", why: message };
    }
  }

  #reached(): KubernetesClient {
    if (this.#client === undefined) throw new Error(this.unreachable);
    return this.#client;
  }

  async #tryTo<T>(read: (client: KubernetesClient) => Promise<T>): Promise<T | undefined> {
    return this.#client && read(this.#client).catch(() => undefined);
  }
}
