import { defineKind, objectId } from "../../contract/index";
import { capsuleTenantAdmission } from "./admission/admission";
import { DELETE_YOUNGER, NAMESPACE_DELETER, TENANT_LABEL } from "./labels";
import { capsuleNamespaceView } from "./namespace-view";
import { tenantsOf } from "./namespaces";
import { capsuleTenantProgram } from "./program";
import { balanceQuotas } from "./quota";
import { noteEnforcement } from "./rights";
import { capsuleTenantSpec, capsuleTenantStatus } from "./schema";
import { capsuleTenantConditions, capsuleTenantNeedsReconcile, capsuleTenantReport } from "./status";
import { validateCapsuleTenant } from "./validate";
import { tellOfSurplus } from "./younger";

export const capsuleTenant = defineKind({
  group: "capsule.clastix.io",
  version: "v1alpha1",
  kind: "Tenant",
  plural: "tenants",
  singular: "tenant",
  shortNames: ["tnt"],
  scope: "Cluster",
  description: "A team that creates its own namespaces, with limits, network policies and quotas.",
  spec: capsuleTenantSpec,
  status: capsuleTenantStatus,
  columns: [
    { name: "Quota", type: "integer", jsonPath: ".spec.namespaceQuota" },
    { name: "Count", type: "integer", jsonPath: ".status.size" },
    { name: "Owner", type: "string", jsonPath: ".spec.owner.name" },
    { name: "Cordoned", type: "string", jsonPath: ".status.conditions[?(@.type=='Cordoned')].status" },
    { name: "Node Selector", type: "string", jsonPath: ".spec.nodeSelector" },
  ],
  owns: [
    { apiVersion: "v1", kind: "Namespace" },
    { apiVersion: "v1", kind: "LimitRange" },
    { apiVersion: "v1", kind: "ResourceQuota" },
    { apiVersion: "networking.k8s.io/v1", kind: "NetworkPolicy" },
    { apiVersion: "rbac.authorization.k8s.io/v1", kind: "RoleBinding" },
    { apiVersion: "admissionregistration.k8s.io/v1", kind: "ValidatingAdmissionPolicyBinding" },
  ],
  directory: __dirname,
  validate: validateCapsuleTenant,
  program: capsuleTenantProgram,
  report: capsuleTenantReport,
  capabilities: {
    rules: [
      {
        rule: "self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= 63",
        message: "the name is a label of the namespaces: at most 63 lower-case letters, digits and dashes",
      },
    ],
    permissions: [
      // Compared with each other, where a tenant has a scope of host name collisions.
      { apiGroups: ["networking.k8s.io"], resources: ["ingresses"], verbs: ["list", "watch"] },
      // To bind a role takes all of its rights, or the right to bind it.
      {
        apiGroups: ["rbac.authorization.k8s.io"],
        resources: ["clusterroles"],
        resourceNames: ["admin", NAMESPACE_DELETER],
        verbs: ["bind"],
      },
    ],
    optionalPermissions: {
      [DELETE_YOUNGER]: [{ apiGroups: ["networking.k8s.io"], resources: ["ingresses"], verbs: ["delete"] }],
    },
    watches: [
      {
        apiVersion: "v1",
        kind: "Namespace",
        labelSelector: TENANT_LABEL,
        selectorOf: (tenant) => `${TENANT_LABEL}=${tenant}`,
        keysOf: tenantsOf,
        deletedWithObject: true,
      },
    ],
    liveState: {
      reads: [
        { apiVersion: "v1", kind: "Namespace" },
        { apiVersion: "v1", kind: "ResourceQuota" },
        { apiVersion: "rbac.authorization.k8s.io/v1", kind: "RoleBinding" },
        { apiVersion: "admissionregistration.k8s.io/v1", kind: "ValidatingAdmissionPolicyBinding" },
      ],
      needsReconcile: capsuleTenantNeedsReconcile,
    },
    claims: { of: (_tenant, watched) => watched.map(objectId) },
    conditions: capsuleTenantConditions,
    maintain: async (tenant, maintenance) => {
      const again = [await balanceQuotas(tenant, maintenance), await noteEnforcement(tenant, maintenance)];
      await tellOfSurplus(tenant, maintenance); // the last, as others may refuse that namespaces are deleted
      return again.filter((result) => result !== undefined).sort((a, b) => a.requeueAfterMs - b.requeueAfterMs)[0];
    },
    environment: {
      KINDSTACK_CAPSULE_USER_GROUPS:
        "groups that create namespaces through Capsule's Tenants (default: capsule.clastix.io)",
      [DELETE_YOUNGER]: "true: of two objects that came at once where one is allowed, the younger one is deleted",
      KINDSTACK_CAPSULE_CORDON_EXEMPT: "users and groups that are exempt in cordoned tenants of Capsule",
    },
    admission: capsuleTenantAdmission(),
    namespaceView: capsuleNamespaceView,
  },
});
