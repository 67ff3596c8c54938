import type { KindAdmission } from "../../contract/admission";
import { tenantPolicies } from "../policies";
import { namespaceWebhook, ownersOf } from "./namespaces";
import { QuotaReservations, tenantOf } from "./reservations";
import { namespaceRoles } from "./roles";

/** What Capsule's Tenant has a say in: who may make namespaces, and what may be in them. */
export function capsuleTenantAdmission(): KindAdmission {
  const reservations = new QuotaReservations();
  return {
    watches: {
      tenants: {
        apiVersion: "capsule.clastix.io/v1alpha1",
        kind: "Tenant",
        indexers: { owner: ownersOf },
      },
      namespaces: {
        apiVersion: "v1",
        kind: "Namespace",
        indexers: { tenant: tenantOf },
        onDelete: (namespace) => reservations.ended(namespace),
      },
    },
    // The policies first: nobody gets the right to make namespaces before they are guarded.
    objects: () => [...tenantPolicies(), ...namespaceRoles()],
    webhooks: () => [namespaceWebhook(reservations)],
  };
}
