import { ApiError, type ApiServer, isApiError } from "./api-server";
import type { ResourceType } from "./types";

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
      const problem = `the API server does not serve ${kind} in ${apiVersion}: is its CRD installed?`;
      throw new ApiError(404, "UnknownKind", problem);
    } catch (error) {
      this.#types.delete(apiVersion); // it may be installed later
      throw error;
    }
  }

  async #discover(apiVersion: string): Promise<ResourceType[]> {
    type Resources = { resources: { name: string; kind: string; namespaced: boolean }[] };
    const found = await this.server.json<Resources>("GET", groupVersionPath(apiVersion)).catch(undefinedWhenNotFound);
    return (found?.resources ?? [])
      .filter(({ name }) => !name.includes("/"))
      .map(({ name, kind, namespaced }) => ({ apiVersion, kind, plural: name, namespaced }));
  }
}

export function groupVersionPath(apiVersion: string): string {
  return apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
}

export function undefinedWhenNotFound(error: unknown): undefined {
  if (isApiError(error, 404)) return undefined;
  throw error;
}
