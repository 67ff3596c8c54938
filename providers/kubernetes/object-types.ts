import { isDeepStrictEqual } from "node:util";
import type { Manifest } from "./types";

/* What sets some of Kubernetes' own types apart. */

export const POD = "v1/Pod";
export const NAMESPACE = "v1/Namespace";
const DEPLOYMENT = "apps/v1/Deployment";
const ROLE_BINDING = "rbac.authorization.k8s.io/v1/RoleBinding";
const LIMITS = ["v1/LimitRange", "v1/ResourceQuota", "networking.k8s.io/v1/NetworkPolicy"];

/**
 * By type, the path of the field that the API server does not let anyone change; a change of it needs another object. The
 * server adds to none of them but a Pod's.
 */
const IMMUTABLE_FIELD: Readonly<Record<string, readonly string[]>> = {
  [POD]: ["spec"],
  [DEPLOYMENT]: ["spec", "selector"],
  [ROLE_BINDING]: ["roleRef"],
  "v1/ResourceQuota": ["spec", "scopes"],
};

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

/** Whether an object makes others, so that it is gone when those are. */
export function hasDependents(object: Manifest): boolean {
  return typeName(object) === DEPLOYMENT;
}

export function changesImmutableField(olds: Manifest, news: Manifest): boolean {
  const path = IMMUTABLE_FIELD[typeName(news)];
  return path !== undefined && !isDeepStrictEqual(fieldAt(olds, path), fieldAt(news, path));
}

function fieldAt(manifest: Manifest, path: readonly string[]): unknown {
  return path.reduce<unknown>((value, name) => (value as Record<string, unknown> | undefined)?.[name], manifest);
}
