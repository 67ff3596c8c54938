import type { V1IngressSpec } from "@kubernetes/client-node";
import { LRUCache } from "lru-cache";
import type { Manifest } from "../../../providers/kubernetes/index";
import { type AdmissionWebhook, objectKey } from "../../contract/index";
import { HOSTNAME_COLLISION_LABEL } from "../labels";
import { type CapsuleTenant, type CapsuleTenantSpec, COLLISION_SCOPES } from "../schema";
import { type LiveTenant, tenantNameOf, tenantOf } from "./tenants";

/** On a Tenant: Capsule's own way to say the scope. The specification has a field for it, which wins. */
export const HOSTNAME_COLLISION_ANNOTATION = "ingress.capsule.clastix.io/hostname-collision-scope";

/** Longer than it takes until an Ingress that was allowed is in the cache. */
const ADMITTED_MS = 10_000;
const MAX_ADMITTED = 10_000;

type Scope = NonNullable<CapsuleTenantSpec["hostnameCollisionScope"]>;

/** The scope in which two Ingresses of a tenant may not have the same host name and path. */
export function collisionScope({ metadata, spec }: CapsuleTenant): Scope | undefined {
  const annotated = metadata.annotations?.[HOSTNAME_COLLISION_ANNOTATION];
  return spec.hostnameCollisionScope ?? COLLISION_SCOPES.find((scope) => scope === annotated);
}

/**
 * Refuses an Ingress with a host name and path that another one has within the scope of its tenant. No policy of the API
 * server can compare objects; only namespaces of tenants that ask for it are concerned.
 */
export function ingressCollisionWebhook(): AdmissionWebhook {
  /** Ingresses that were allowed a moment ago, by key: the cache may not have them yet. */
  const admitted = new LRUCache<string, Manifest>({ max: MAX_ADMITTED, ttl: ADMITTED_MS });
  return {
    name: "ingresses.capsule.clastix.io",
    type: "validating",
    rules: [
      {
        apiGroups: ["networking.k8s.io"],
        apiVersions: ["v1"],
        operations: ["CREATE", "UPDATE"],
        resources: ["ingresses"],
        scope: "Namespaced",
      },
    ],
    failurePolicy: "Fail",
    namespaceSelector: { matchExpressions: [{ key: HOSTNAME_COLLISION_LABEL, operator: "Exists" }] },
    timeoutSeconds: 5,
    sideEffects: "NoneOnDryRun",
    review: ({ object, oldObject, namespace, dryRun }, view) => {
      const tenant = tenantOf(namespace, view);
      if (object === undefined || tenant === undefined) return { allowed: true };
      const scope = collisionScope(tenant) ?? "Disabled";
      if (scope === "Disabled") return { allowed: true };
      const key = objectKey(object.metadata);
      const isRival = ({ metadata }: Manifest) => {
        if (objectKey(metadata) === key) return false;
        if (scope === "Namespace") return metadata.namespace === namespace;
        const other = tenantNameOf(metadata.namespace ?? "", view);
        return scope === "Tenant" ? other === tenant.metadata.name : other !== undefined;
      };
      const before = oldObject === undefined ? [] : endpointsOf(oldObject);
      const added = endpointsOf(object).filter((endpoint) => !before.includes(endpoint));
      const taken = added.find((endpoint) => {
        const recent = [...admitted.values()].filter((ingress) => endpointsOf(ingress).includes(endpoint));
        return [...view.byIndex("ingresses", "endpoint", endpoint), ...recent].some(isRival);
      });
      if (taken !== undefined) {
        const tenantScope = `the tenant ${tenant.metadata.name}`;
        const within = { Cluster: "the cluster", Tenant: tenantScope, Namespace: "this namespace" }[scope];
        return { allowed: false, message: `another Ingress in ${within} has ${taken} already` };
      }
      if (!dryRun && added.length > 0) admitted.set(key, object);
      return { allowed: true };
    },
  };
}

/**
 * Refuses a Tenant that allows a host name by name that another one does, unless one of them has the scope `Disabled`.
 */
export function tenantHostnamesWebhook(): AdmissionWebhook {
  return {
    name: "hostnames.capsule.clastix.io",
    type: "validating",
    rules: [
      {
        apiGroups: ["capsule.clastix.io"],
        apiVersions: ["v1alpha1"],
        operations: ["CREATE", "UPDATE"],
        resources: ["tenants"],
        scope: "Cluster",
      },
    ],
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

/** The index of an Ingress: each host name with each path, `*` for all hosts. */
export function endpointsOf({ spec }: Manifest): string[] {
  const { rules = [] } = (spec ?? {}) as Partial<V1IngressSpec>;
  return rules.flatMap(({ host = "*", http }) => {
    const paths: { path?: string }[] = http?.paths ?? [{}];
    return paths.map(({ path = "/" }) => `${host}${path}`);
  });
}
