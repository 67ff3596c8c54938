import { type ApiServer, isApiError } from "./api-server";
import { groupOf } from "./object-types";
import { requireNoObjects, servedVersions, unknownKind } from "./type-absence";
import type { ObjectType, ResourceType } from "./types";

/** Types of Kubernetes itself, which need no discovery. */
const BUILT_IN: readonly ResourceType[] = [
  { apiVersion: "v1", kind: "ConfigMap", plural: "configmaps", namespaced: true },
  { apiVersion: "v1", kind: "Namespace", plural: "namespaces", namespaced: false },
  { apiVersion: "v1", kind: "Pod", plural: "pods", namespaced: true },
  { apiVersion: "v1", kind: "Secret", plural: "secrets", namespaced: true },
  { apiVersion: "events.k8s.io/v1", kind: "Event", plural: "events", namespaced: true },
  { apiVersion: "coordination.k8s.io/v1", kind: "Lease", plural: "leases", namespaced: true },
];

/** Where an API server serves which types, by discovery; known types are asked for once. */
export class ResourceTypes {
  readonly #types = new Map<string, Promise<ResourceType[]>>();

  constructor(private readonly server: Pick<ApiServer, "json">) {}

  /** Where `kind` is served. @throws ApiError 404 when it is not */
  async resourceType(apiVersion: string, kind: string): Promise<ResourceType> {
    const builtIn = BUILT_IN.find((type) => type.kind === kind && type.apiVersion === apiVersion);
    if (builtIn !== undefined) return builtIn;
    const types = this.#types.get(apiVersion) ?? this.#discover(apiVersion);
    this.#types.set(apiVersion, types);
    try {
      const found = (await types).find((type) => type.kind === kind);
      if (found !== undefined) return found;
      throw unknownKind({ apiVersion, kind });
    } catch (error) {
      this.#types.delete(apiVersion); // it may be installed later
      throw error;
    }
  }

  /** What is known of a version of a group may be outdated: it is asked for again. */
  forget(apiVersion: string): void {
    this.#types.delete(apiVersion);
  }

  /**
   * Where the objects of a type are served that its own version does not show, the version asked for first.
   *
   * @returns `[]` only when no such objects can exist
   * @throws ApiError `UnknownKind` when they can, though no version shows them; other errors when that cannot be told
   */
  async elsewhere(type: ObjectType): Promise<ResourceType[]> {
    const versions = await servedVersions(this.server, groupOf(type.apiVersion));
    const found: ResourceType[] = [];
    for (const apiVersion of versions) {
      this.forget(apiVersion);
      found.push(...(await this.#discover(apiVersion)).filter(({ kind }) => kind === type.kind));
    }
    if (found.length === 0) await requireNoObjects(this.server, type, versions);
    return found.sort((a, b) => Number(b.apiVersion === type.apiVersion) - Number(a.apiVersion === type.apiVersion));
  }

  async #discover(apiVersion: string): Promise<ResourceType[]> {
    type Resources = { resources: { name: string; kind: string; namespaced: boolean }[] };
    const path = groupVersionPath(apiVersion);
    const found = await this.server.json<Resources>("GET", path).catch((error: unknown) => {
      if (isApiError(error, 404)) return undefined;
      throw error;
    });
    return (found?.resources ?? [])
      .filter(({ name }) => !name.includes("/"))
      .map(({ name, kind, namespaced }) => ({ apiVersion, kind, plural: name, namespaced }));
  }
}

export function groupVersionPath(apiVersion: string): string {
  return apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
}
