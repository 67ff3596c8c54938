import { protectedNamespaces } from "../../providers/kubernetes/protected-namespaces";
import { defineKind } from "../contract/kind";
import { objectId } from "../contract/object";
import { tenantProgram } from "./program";
import { tenantSpec, tenantStatus, validateTenant } from "./schema";
import { tenantReport } from "./status";

export const tenant = defineKind({
  group: "multitenancy.codereliant.io",
  version: "v1",
  kind: "Tenant",
  plural: "tenants",
  singular: "tenant",
  scope: "Cluster",
  description: "A team: its namespaces, and the groups that may administer and use them.",
  spec: tenantSpec,
  status: tenantStatus,
  columns: [
    { name: "Email", type: "string", jsonPath: ".status.adminEmail" },
    { name: "NamespaceCount", type: "integer", jsonPath: ".status.namespaceCount" },
  ],
  granularity: "object",
  owns: [
    { apiVersion: "v1", kind: "Namespace" },
    { apiVersion: "rbac.authorization.k8s.io/v1", kind: "RoleBinding" },
  ],
  // Whoever binds a role must have all of its rights, or the right to bind it.
  permissions: [
    {
      apiGroups: ["rbac.authorization.k8s.io"],
      resources: ["clusterroles"],
      resourceNames: ["admin", "edit"],
      verbs: ["bind"],
    },
  ],
  directory: __dirname,
  settings: protectedNamespaces,
  validate: validateTenant,
  claims: ({ spec }) => spec.namespaces.map(namespaceId),
  withhold: ({ spec, ...object }, ids) => ({
    ...object,
    spec: { ...spec, namespaces: spec.namespaces.filter((name) => !ids.has(namespaceId(name))) },
  }),
  program: tenantProgram,
  report: tenantReport,
});

function namespaceId(name: string): string {
  return objectId({ apiVersion: "v1", kind: "Namespace", metadata: { name } });
}
