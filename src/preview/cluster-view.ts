import { KubeConfig } from "@kubernetes/client-node";
import { errorMessageOf } from "../../providers/errors";
import { ApiError, KubernetesClient, type LiveObject, type Manifest } from "../../providers/kubernetes/client";
import { clusterUid } from "../../providers/kubernetes/cluster";
import { OWNER_UID_LABEL } from "../../providers/kubernetes/ownership";
import { type AnyKind, kindApiVersion } from "../../stacks/contract/kind";
import { watchedObjects } from "../../stacks/contract/watched";

/** An object as far as it can be seen. */
export type Sighting =
  | { seen: true; object: LiveObject | undefined }
  /** It cannot be told whether it is there, and why. */
  | { seen: false; why: string };

/** What the API server says of a manifest. */
export type Validation = { type: "valid" } | { type: "invalid"; message: string } | { type: "unknown"; why: string };

const PROBE_TIMEOUT_MS = 5_000;
/** The field manager of dry runs: one that owns no fields, so that none count as removed. */
const DRY_RUN_MANAGER = "kindstack-preview";

/** The cluster as a reader sees it, whose rights may be limited: a refused request counts as unknown. */
export class ClusterView {
  readonly #client: KubernetesClient;
  #uid: Promise<string | undefined> | undefined;

  private constructor(
    client: KubernetesClient,
    /** Why there is no cluster to look at; `undefined` when there is one. */
    readonly unreachable: string | undefined,
  ) {
    this.#client = client;
  }

  /** Asks once whether there is an API server, so that nothing else has to wait for one that does not answer. */
  static async open(client: KubernetesClient): Promise<ClusterView> {
    const unreachable = await client
      .json("GET", "/version", { signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) })
      .then(() => undefined, errorMessageOf);
    return new ClusterView(client, unreachable);
  }

  /** No cluster, and why. */
  static none(why: string): ClusterView {
    return new ClusterView(new KubernetesClient(new KubeConfig()), why);
  }

  /** What tells the cluster from others; `undefined` when that cannot be read. */
  uid(): Promise<string | undefined> {
    this.#uid ??=
      this.unreachable === undefined ? clusterUid(this.#client).catch(() => undefined) : Promise.resolve(undefined);
    return this.#uid;
  }

  find(kind: AnyKind, name: string, namespace: string | undefined): Promise<Sighting> {
    const metadata = { name, ...(namespace !== undefined && { namespace }) };
    return this.look({ apiVersion: kindApiVersion(kind), kind: kind.kind, metadata });
  }

  /** The object that a manifest names. */
  async look(manifest: Manifest): Promise<Sighting> {
    if (this.unreachable !== undefined) return { seen: false, why: this.unreachable };
    try {
      return { seen: true, object: await this.#client.find(manifest) };
    } catch (error) {
      // Where the type is not installed, there is no object of it.
      if (error instanceof ApiError && error.notFound) return { seen: true, object: undefined };
      return { seen: false, why: errorMessageOf(error) };
    }
  }

  /** All objects of a kind. @throws ApiError when they cannot be read */
  async list(kind: AnyKind, namespace?: string): Promise<LiveObject[]> {
    const type = { apiVersion: kindApiVersion(kind), kind: kind.kind };
    return (await this.#client.list(type, { namespace })).items;
  }

  /** What a kind's object made, as it is; `undefined` when that cannot be read. */
  async owned(kind: AnyKind, { uid, namespace }: LiveObject["metadata"]): Promise<LiveObject[] | undefined> {
    try {
      const lists = await Promise.all(
        kind.owns.map((type) =>
          this.#client.list(type, {
            labelSelector: `${OWNER_UID_LABEL}=${uid}`,
            namespace, // anybody may write that label on what is his
          }),
        ),
      );
      return lists.flatMap(({ items }) => items);
    } catch {
      return undefined;
    }
  }

  /** What a kind observes for the object of this key; `undefined` when that cannot be read. */
  async observed(kind: AnyKind, key: string): Promise<LiveObject[] | undefined> {
    if (this.unreachable !== undefined) return undefined;
    return watchedObjects(this.#client, kind, key).catch(() => undefined);
  }

  /** Has the API server go through an apply without doing it: schema, rules in CEL, admission. */
  async validate(manifest: Manifest): Promise<Validation> {
    if (this.unreachable !== undefined) return { type: "unknown", why: this.unreachable };
    const { status: _, metadata, ...rest } = manifest;
    const { uid, resourceVersion, generation, creationTimestamp, managedFields, ...written } = metadata;
    try {
      const dryRun = { dryRun: true, fieldManager: DRY_RUN_MANAGER };
      await this.#client.apply({ ...rest, metadata: written } as Manifest, dryRun);
      return { type: "valid" };
    } catch (error) {
      const message = errorMessageOf(error);
      // Fields that the schema does not have, and items that are there twice, are told by the code that merges, as an error
      // of the server.
      // A policy's refusal has the status of a missing permission.
      const refused =
        error instanceof ApiError &&
        ([400, 422].includes(error.status) ||
          /not declared in schema|duplicate entries|denied (the )?request/.test(message));
      return refused ? { type: "invalid", message } : { type: "unknown", why: message };
    }
  }
}
