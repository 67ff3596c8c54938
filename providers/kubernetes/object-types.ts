import { differsIn } from "./field-path";
import type { Manifest } from "./types";

/* What sets some of Kubernetes' own types apart. */

export const NAMESPACE = "v1/Namespace";
const DEPLOYMENT = "apps/v1/Deployment";
const ROLE_BINDING = "rbac.authorization.k8s.io/v1/RoleBinding";
const LIMITS = ["v1/LimitRange", "v1/ResourceQuota", "networking.k8s.io/v1/NetworkPolicy"];

/** By type, the immutable field without defaults of the API server: its live and its wanted value can be compared. */
const IMMUTABLE_FIELD: Readonly<Record<string, string>> = {
  [DEPLOYMENT]: "spec.selector",
  [ROLE_BINDING]: "roleRef",
  "v1/ResourceQuota": "spec.scopes",
};

/** What is lost with an object of these types is not made again with it. */
const HOLDS_DATA: readonly string[] = [
  NAMESPACE,
  "v1/PersistentVolume",
  "v1/PersistentVolumeClaim",
  "apiextensions.k8s.io/v1/CustomResourceDefinition",
];

export function isSecret(object: Manifest): boolean {
  return typeName(object) === "v1/Secret";
}

/**
 * A manifest with a Secret's `stringData` as `data`, which is all that is stored: what is removed from `stringData` would stay,
 * and what others write to `data` would not be seen.
 */
export function withStoredData(manifest: Manifest): Manifest {
  const { stringData, ...rest } = manifest;
  if (!isSecret(manifest) || typeof stringData !== "object" || stringData === null) return manifest;
  const encoded = Object.entries(stringData).map(([key, text]) => [key, Buffer.from(String(text)).toString("base64")]);
  return { ...rest, data: { ...(rest.data as object | undefined), ...Object.fromEntries(encoded) } };
}

/** The API group of an `apiVersion`; empty for the core group. */
export function groupOf(apiVersion: string): string {
  return apiVersion.includes("/") ? (apiVersion.split("/")[0] ?? "") : "";
}

export function typeName({ apiVersion, kind }: Manifest): string {
  return `${apiVersion}/${kind}`;
}

export function grantsRights(object: Manifest): boolean {
  return typeName(object) === ROLE_BINDING;
}

/** Whether an object limits what its namespace may have or do. */
export function limitsNamespace(object: Manifest): boolean {
  return LIMITS.includes(typeName(object));
}

/** Whether an object has dependents: it counts as gone when these are gone. */
export function hasDependents(object: Manifest): boolean {
  return typeName(object) === DEPLOYMENT;
}

export function holdsData(object: Manifest): boolean {
  return HOLDS_DATA.includes(typeName(object));
}

/** Whether what is live differs from a manifest in a field that cannot be changed; known for few types. */
export function differsForGood(live: Manifest, manifest: Manifest, paths: readonly string[] = ["*"]): boolean {
  const field = IMMUTABLE_FIELD[typeName(manifest)];
  return field !== undefined && (paths.includes("*") || paths.includes(field)) && differsIn(field, live, manifest);
}
