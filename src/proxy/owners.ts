import type { Logger } from "pino";
import type { KubernetesClient, LiveObject, ResourceType } from "../../providers/kubernetes/client";
import { compareResourceVersions, Informer, type ObjectChange } from "../cache/informer";
import type { Identity } from "./identity";

/** Capsule's Tenant, whose owner is who may look at its namespaces. */
const TENANT: ResourceType = {
  apiVersion: "capsule.clastix.io/v1alpha1",
  kind: "Tenant",
  plural: "tenants",
  namespaced: false,
};
const BY_OWNER = "owner";

/** A subscriber to the namespaces of some tenants, to be notified when these change. */
interface Follower {
  identity: Identity;
  tenants: string;
  changed: () => void;
}

/** Who owns which tenants: a cache, kept up to date by a watch. */
export class Owners {
  readonly #informer: Informer;
  readonly #followers = new Set<Follower>();
  /** Owner → version at which a tenant became theirs or ceased to be. */
  readonly #changedAt = new Map<string, string>();
  /** What changed before this version is not known: it was before the start, or was missed. */
  #knownSince: string | undefined;

  constructor(options: { client: Pick<KubernetesClient, "list" | "watch">; logger: Logger }) {
    this.#informer = new Informer({
      ...options,
      type: TENANT,
      indexers: { [BY_OWNER]: ownersOf },
      transform: ({ apiVersion, kind, metadata, spec }) => {
        const { name, uid, resourceVersion } = metadata;
        return { apiVersion, kind, metadata: { name, uid, resourceVersion }, spec: { owner: (spec as Spec)?.owner } };
      },
      onChange: (change) => this.#handle(change),
      observer: {
        relisted: () => {
          this.#knownSince = undefined;
        },
      },
    });
  }

  /** Whether the cache is filled. */
  get ready(): boolean {
    return this.#informer.hasSynced;
  }

  /** When the API server was last heard of, by `performance.now()`. */
  get lastContact(): number {
    return this.#informer.lastContact;
  }

  start(signal: AbortSignal): Promise<void> {
    return this.#informer.start(signal);
  }

  /** The names of the tenants that a user owns, alone or as a member of a group; sorted. */
  tenantsOf(identity: Identity): string[] {
    const tenants = ownerKeysOf(identity).flatMap((owner) => this.#informer.byIndex(BY_OWNER, owner));
    return [...new Set(tenants.map(({ metadata }) => metadata.name))].sort();
  }

  /**
   * Whether what a user read at `resourceVersion` may have been read as the owner of other tenants than now. Tenants
   * and namespaces have their versions from the same store, so that one can be held against the other.
   */
  changedSince(identity: Identity, resourceVersion: string): boolean {
    this.#knownSince ??= this.#informer.resourceVersion;
    const versions = ownerKeysOf(identity).map((owner) => this.#changedAt.get(owner) ?? "0");
    return [this.#knownSince, ...versions].some((version) => compareResourceVersions(resourceVersion, version) < 0);
  }

  /** Calls `changed` once, when a user owns other tenants than `tenants`. @returns to be called when it no longer matters */
  follow(identity: Identity, tenants: readonly string[], changed: () => void): () => void {
    const follower = { identity, tenants: tenants.join(), changed };
    this.#followers.add(follower);
    this.#notify(follower);
    return () => this.#followers.delete(follower);
  }

  #handle(change: ObjectChange): void {
    const before = "previous" in change ? ownersOf(change.previous) : [];
    const after = change.type === "deleted" ? [] : ownersOf(change.object);
    if (before.join() === after.join()) return;
    for (const owner of [...before, ...after]) this.#changedAt.set(owner, change.object.metadata.resourceVersion);
    for (const follower of this.#followers) this.#notify(follower);
  }

  #notify(follower: Follower): void {
    if (this.tenantsOf(follower.identity).join() === follower.tenants) return;
    this.#followers.delete(follower);
    follower.changed();
  }
}

interface Spec {
  owner?: { kind?: unknown; name?: unknown };
}

function ownersOf({ spec }: LiveObject): string[] {
  const { kind, name } = (spec as Spec | undefined)?.owner ?? {};
  return typeof kind === "string" && typeof name === "string" ? [`${kind}:${name}`] : [];
}

/** All names that a tenant may use for a user as its owner. */
function ownerKeysOf({ name, groups }: Identity): string[] {
  const isServiceAccount = name.startsWith("system:serviceaccount:");
  return [
    `User:${name}`,
    ...(isServiceAccount ? [`ServiceAccount:${name}`] : []),
    ...groups.map((group) => `Group:${group}`),
  ];
}
