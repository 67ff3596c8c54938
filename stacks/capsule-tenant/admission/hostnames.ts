import type { LiveObject, Manifest } from "../../../providers/kubernetes/index";
import type { AdmissionView, AdmissionWebhook, Decision } from "../../contract/index";
import { HOSTNAME_COLLISION_ANNOTATION, HOSTNAME_COLLISION_LABEL, TENANT_LABEL } from "../labels";
import type { CapsuleTenant, CapsuleTenantSpec } from "../schema";

type Scope = NonNullable<CapsuleTenantSpec["hostnameCollisionScope"]>;

/** Longer than it takes until an Ingress that was allowed is in the cache. */
const HELD_MS = 10_000;
const MAX_HELD = 10_000;

/** Within what two Ingresses of a tenant may not have the same host name and path; Capsule's annotation says so, too. */
export function collisionScope({ metadata, spec }: CapsuleTenant): Scope | undefined {
  return spec.hostnameCollisionScope ?? (metadata.annotations?.[HOSTNAME_COLLISION_ANNOTATION] as Scope | undefined);
}

/**
 * Refuses an Ingress with a host name and path that another one has within the scope of its tenant. No policy of the API
 * server can compare objects; only namespaces of tenants that ask for it are concerned.
 */
export function ingressCollisionWebhook(): AdmissionWebhook {
  const held = new Map<string, { holder: string; until: number }>();
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
      const tenant = view.get("namespaces", namespace)?.metadata.labels?.[TENANT_LABEL] ?? "";
      const found = view.get("tenants", tenant) as unknown as CapsuleTenant | undefined;
      const scope = found && collisionScope(found);
      if (object === undefined || scope === undefined || scope === "Disabled") return { allowed: true };
      const self = `${namespace}/${object.metadata.name}`;
      const before = oldObject === undefined ? [] : endpointsOf(oldObject);
      const now = Date.now();
      for (const [key, { until }] of held) if (until < now) held.delete(key);
      const added = endpointsOf(object).filter((endpoint) => !before.includes(endpoint));
      for (const endpoint of added) {
        const other = holderOf(view, endpoint, { namespace, tenant, scope }, self);
        const holder = other ?? held.get(keyOf(endpoint, { namespace, tenant, scope }))?.holder;
        if (holder !== undefined && holder !== self) return refuse(endpoint, scope, tenant);
      }
      if (!dryRun && held.size < MAX_HELD) {
        for (const endpoint of added) {
          held.set(keyOf(endpoint, { namespace, tenant, scope }), { holder: self, until: now + HELD_MS });
        }
      }
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
      const tenant = object as unknown as CapsuleTenant;
      if (collisionScope(tenant) === "Disabled") return { allowed: true };
      const before = (oldObject?.spec as CapsuleTenantSpec | undefined)?.ingressHostnames?.allowed ?? [];
      for (const host of tenant.spec.ingressHostnames?.allowed ?? []) {
        if (before.includes(host)) continue;
        const other = view
          .byIndex("tenants", "hostname", host)
          .find((one) => one.metadata.name !== tenant.metadata.name && scopeOf(one) !== "Disabled");
        if (other !== undefined) {
          const message = `spec.ingressHostnames.allowed: "${host}" is allowed in the tenant ${other.metadata.name} already; with hostnameCollisionScope Disabled in one of them, both may have it`;
          return { allowed: false, message };
        }
      }
      return { allowed: true };
    },
  };
}

function scopeOf(tenant: LiveObject): Scope | undefined {
  return collisionScope(tenant as unknown as CapsuleTenant);
}

/** Under which a Tenant is found by the host names that it allows by name. */
export function hostnamesOf(tenant: LiveObject): string[] {
  return (tenant.spec as CapsuleTenantSpec).ingressHostnames?.allowed ?? [];
}

interface Rules {
  rules?: { host?: string; http?: { paths?: { path?: string }[] } }[];
}

/** Under which an Ingress is found: each host name with each path, `*` for all. */
export function endpointsOf({ spec }: Manifest): string[] {
  const { rules = [] } = (spec ?? {}) as Rules;
  return rules.flatMap(({ host = "*", http }) => {
    const paths = http?.paths ?? [{}];
    return paths.map(({ path = "/" }) => `${host}${path}`);
  });
}

interface Place {
  namespace: string;
  tenant: string;
  scope: Scope;
}

/** Another Ingress within the scope that has this host name and path. */
function holderOf(view: AdmissionView, endpoint: string, place: Place, self: string): string | undefined {
  const tenantOf = (namespace: string | undefined) =>
    view.get("namespaces", namespace ?? "")?.metadata.labels?.[TENANT_LABEL];
  return view
    .byIndex("ingresses", "endpoint", endpoint)
    .filter(({ metadata: { namespace } }) => {
      if (place.scope === "Namespace") return namespace === place.namespace;
      const tenant = tenantOf(namespace);
      return place.scope === "Tenant" ? tenant === place.tenant : tenant !== undefined;
    })
    .map(({ metadata: { namespace, name } }) => `${namespace}/${name}`)
    .find((holder) => holder !== self);
}

function keyOf(endpoint: string, { namespace, tenant, scope }: Place): string {
  const within = { Cluster: "", Tenant: tenant, Namespace: namespace, Disabled: "" }[scope];
  return `${scope} ${within} ${endpoint}`;
}

function refuse(endpoint: string, scope: Scope, tenant: string): Decision {
  const within = { Cluster: "the cluster", Tenant: `the tenant ${tenant}`, Namespace: "this namespace", Disabled: "" }[
    scope
  ];
  return { allowed: false, message: `another Ingress in ${within} has ${endpoint} already` };
}
