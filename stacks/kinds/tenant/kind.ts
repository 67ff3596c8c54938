import { allowedGroups, protectedNamespaces } from "../../../providers/kubernetes/index";
import { defineKind, objectId } from "../../contract/index";
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
  owns: [
    { apiVersion: "v1", kind: "Namespace" },
    { apiVersion: "rbac.authorization.k8s.io/v1", kind: "RoleBinding" },
  ],
  directory: __dirname,
  validate: validateTenant,
  program: tenantProgram,
  report: tenantReport,
  capabilities: {
    // To bind a role one must have all of its rights, or the right to bind it.
    permissions: [
      {
        apiGroups: ["rbac.authorization.k8s.io"],
        resources: ["clusterroles"],
        resourceNames: ["admin", "edit"],
        verbs: ["bind"],
      },
    ],
    settings: () => [...protectedNamespaces(), ...allowedGroups()],
    claims: {
      of: ({ spec }) => spec.namespaces.map(namespaceId),
      withhold: ({ spec, ...object }, ids) => ({
        ...object,
        spec: { ...spec, namespaces: spec.namespaces.filter((name) => !ids.has(namespaceId(name))) },
      }),
    },
  },
});

function namespaceId(name: string): string {
  return objectId({ apiVersion: "v1", kind: "Namespace", metadata: { name } });
}
