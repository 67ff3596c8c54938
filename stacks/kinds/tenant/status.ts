import { type LiveObject, wasCreated } from "../../../providers/kubernetes/index";
import type { KindObject } from "../../contract/index";
import type { TenantSpec, TenantStatus } from "./schema";

export function tenantReport({ spec }: KindObject<TenantSpec>, owned: readonly LiveObject[]): TenantStatus {
  const namespaces = owned.filter(({ kind, metadata }) => kind === "Namespace" && !metadata.deletionTimestamp);
  return {
    namespaceCount: namespaces.length,
    adminEmail: spec.adminEmail,
    adoptedNamespaces: namespaces
      .filter((namespace) => !wasCreated(namespace))
      .map(({ metadata }) => metadata.name)
      .sort(),
  };
}
