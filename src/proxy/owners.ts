import type { Logger } from "pino";
import type { LiveObject, ResourceType } from "../../providers/kubernetes/client";
import type { NamespaceView } from "../../stacks/contract/capabilities";
import { compareResourceVersions, type ObjectChange } from "../cache/change";
import { Informer, type InformerClient } from "../cache/informer";
import type { Identity } from "../http/identity";

const BY_OWNER = "owner";

interface OwnersOptions {
  client: InformerClient;
  /** The type of the objects that own namespaces. */
  type: ResourceType;
  view: Pick<NamespaceView, "ownersOf" | "ownerKeysOf">;
  logger: Logger;
}

/** Which users own which objects, and so their namespaces: a cache, kept up to date by a watch. */
export class Owners {
  readonly informer: Informer;
  /** Each calls its subscriber when what a user owns has changed. */
  readonly #followers = new Set<() => void>();
  /** Owner → version at which an object became theirs or ceased to be. */
  readonly #changedAt = new Map<string, string>();
  /** Changes before this version are unknown: they were before the start, or were missed. */
  #knownSince: string | undefined;

  constructor(private readonly options: OwnersOptions) {
    this.informer = new Informer({
      ...options,
      indexers: { [BY_OWNER]: ownersIn },
      transform: (object) => {
        const { name, uid, resourceVersion } = object.metadata;
        const spec: CachedSpec = { owners: options.view.ownersOf(object) };
        const { apiVersion, kind } = object;
        return { apiVersion, kind, metadata: { name, uid, resourceVersion }, spec };
      },
      onChange: (change) => this.#handle(change),
      observer: {
        relisted: () => {
          this.#knownSince = this.informer.resourceVersion;
          this.#changedAt.clear(); // after a restore of the API server's data, those versions are yet to come
        },
      },
    });
    const began = () => {
      this.#knownSince ??= this.informer.resourceVersion;
    };
    this.informer.synced.then(began, () => {});
  }

  get ready(): boolean {
    return this.informer.hasSynced;
  }

  /** The names of the objects that a user owns, alone or as a member of a group; sorted. */
  ownedBy(identity: Identity): string[] {
    const owned = this.#ownerKeysOf(identity).flatMap((owner) => this.informer.byIndex(BY_OWNER, owner));
    return [...new Set(owned.map(({ metadata }) => metadata.name))].sort();
  }

  /**
   * Whether the user may have owned other objects at `resourceVersion` than now. All versions come from the same store,
   * so those of objects and of namespaces can be compared.
   */
  changedSince(identity: Identity, resourceVersion: string): boolean {
    const knownSince = this.#knownSince;
    if (knownSince === undefined) return true;
    const versions = this.#ownerKeysOf(identity).map((owner) => this.#changedAt.get(owner) ?? "0");
    return [knownSince, ...versions].some((version) => compareResourceVersions(resourceVersion, version) < 0);
  }

  /** Calls `changed` once, when a user owns other objects than `owned`. @returns ends the subscription */
  follow(identity: Identity, owned: readonly string[], changed: () => void): () => void {
    const check = () => {
      if (this.ownedBy(identity).join() === owned.join()) return;
      this.#followers.delete(check);
      changed();
    };
    this.#followers.add(check);
    check();
    return () => this.#followers.delete(check);
  }

  #ownerKeysOf({ username: name, groups }: Identity): string[] {
    return this.options.view.ownerKeysOf({ name, groups });
  }

  #handle(change: ObjectChange): void {
    const before = "previous" in change ? ownersIn(change.previous) : [];
    const after = change.type === "deleted" ? [] : ownersIn(change.object);
    if (before.join() === after.join()) return;
    for (const owner of [...before, ...after]) this.#changedAt.set(owner, change.object.metadata.resourceVersion);
    for (const check of this.#followers) check();
  }
}

interface CachedSpec {
  owners: string[];
}

function ownersIn({ spec }: LiveObject): string[] {
  return (spec as CachedSpec).owners;
}
