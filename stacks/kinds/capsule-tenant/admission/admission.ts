import type { LiveObject } from "../../../../providers/kubernetes/index";
import type { KindAdmission } from "../../../contract/index";
import { COLLISIONS_ANNOTATION } from "../collisions";
import { TENANT_LABEL } from "../labels";
import { capsuleNamespaceView } from "../namespace-view";
import { policies } from "../policies/policies";
import { indexKeysOf } from "./endpoints";
import { HOME_WATCHES, homesInTenant } from "./homes";
import { ingressCollisionWebhook } from "./ingress-collisions";
import { LateCollisions } from "./late-collisions";
import { namespaceWebhook, restoredNamespaceWebhook } from "./namespaces";
import { QuotaRoom } from "./quota-room";
import { quotaWebhooks } from "./quotas";
import { namespaceRoles } from "./roles";
import { servicesMetadataWebhook } from "./services-metadata";
import { hostnamesOf, tenantHostnamesWebhook } from "./tenant-hostnames";

/** The admission of Capsule's Tenant: who may create namespaces, and what may be in them. */
export function capsuleTenantAdmission(): KindAdmission {
  const room = new QuotaRoom();
  const collisions = new LateCollisions();
  const webhooks = [
    namespaceWebhook(),
    restoredNamespaceWebhook(),
    servicesMetadataWebhook(),
    ingressCollisionWebhook(),
    tenantHostnamesWebhook(),
    ...quotaWebhooks(room),
  ];
  return {
    watches: {
      tenants: {
        apiVersion: "capsule.clastix.io/v1alpha1",
        kind: "Tenant",
        indexers: { owner: capsuleNamespaceView.ownersOf, hostname: hostnamesOf, home: homesInTenant },
      },
      namespaces: {
        apiVersion: "v1",
        kind: "Namespace",
        indexers: {
          tenant: tenantLabel,
          collisions: ({ metadata }) => (COLLISIONS_ANNOTATION in (metadata.annotations ?? {}) ? ["true"] : []),
        },
      },
      quotas: {
        apiVersion: "v1",
        kind: "ResourceQuota",
        labelSelector: TENANT_LABEL,
        indexers: { tenant: tenantLabel, namespace: ({ metadata: { namespace = "" } }) => [namespace] },
        onChange: (quota, view) => room.quotaChanged(quota, view),
        onDelete: (quota) => room.quotaDeleted(quota),
      },
      ingresses: {
        apiVersion: "networking.k8s.io/v1",
        kind: "Ingress",
        indexers: {
          endpoint: indexKeysOf,
          localEndpoint: (ingress) => indexKeysOf(ingress).map((key) => `${ingress.metadata.namespace} ${key}`),
        },
        onChange: (ingress, view) => collisions.ingressChanged(ingress, view),
        onDelete: (ingress, view) => collisions.ingressDeleted(ingress, view),
      },
      ...HOME_WATCHES,
    },
    // The policies first: no user gets the right to create namespaces before they are guarded.
    objects: () => [...policies(), ...namespaceRoles()],
    webhooks: () => webhooks,
  };
}

function tenantLabel({ metadata: { labels } }: LiveObject): string[] {
  const tenant = labels?.[TENANT_LABEL];
  return tenant === undefined ? [] : [tenant];
}
