import type { Manifest } from "../../../../providers/kubernetes/index";
import type { AdmissionWebhook } from "../../../contract/index";
import type { CapsuleTenantSpec } from "../schema";
import { collisionScope } from "./ingress-collisions";
import type { LiveTenant } from "./tenants";

const TENANTS = { apiGroups: ["capsule.clastix.io"], apiVersions: ["v1alpha1"], resources: ["tenants"] } as const;

/**
 * Refuses a Tenant that allows a host name by name that another one does, unless one of them has the scope `Disabled`.
 */
export function tenantHostnamesWebhook(): AdmissionWebhook {
  return {
    name: "hostnames.capsule.clastix.io",
    type: "validating",
    rules: [{ ...TENANTS, operations: ["CREATE", "UPDATE"], scope: "Cluster" }],
    failurePolicy: "Fail",
    matchConditions: [
      { name: "names-hosts", expression: "size(object.spec.?ingressHostnames.?allowed.orValue([])) > 0" },
      { name: "changes-its-specification", expression: "oldObject == null || oldObject.spec != object.spec" },
    ],
    timeoutSeconds: 5,
    sideEffects: "None",
    review: ({ object, oldObject }, view) => {
      const tenant = object as LiveTenant;
      if (collisionScope(tenant) === "Disabled") return { allowed: true };
      const before = oldObject === undefined ? [] : hostnamesOf(oldObject);
      for (const host of hostnamesOf(tenant).filter((host) => !before.includes(host))) {
        const other = (view.byIndex("tenants", "hostname", host) as LiveTenant[]).find(
          (one) => one.metadata.name !== tenant.metadata.name && collisionScope(one) !== "Disabled",
        );
        if (other === undefined) continue;
        const message = `spec.ingressHostnames.allowed: "${host}" is allowed in the tenant ${other.metadata.name} already; with hostnameCollisionScope Disabled in one of them, both may have it`;
        return { allowed: false, message };
      }
      return { allowed: true };
    },
  };
}

/** The index of a Tenant: the host names that it allows by name. */
export function hostnamesOf({ spec }: Manifest): string[] {
  return (spec as CapsuleTenantSpec).ingressHostnames?.allowed ?? [];
}
