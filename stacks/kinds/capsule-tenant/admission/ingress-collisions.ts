import type { LiveObject, Manifest } from "../../../../providers/kubernetes/index";
import { type AdmissionView, type AdmissionWebhook, objectKey } from "../../../contract/index";
import { HOSTNAME_COLLISION_LABEL } from "../labels";
import { type CapsuleTenant, type CapsuleTenantSpec, COLLISION_SCOPES } from "../schema";
import { type Endpoint, endpointsOf, rivalKeysOf, textOf } from "./endpoints";
import { type LiveTenant, tenantNameOf, tenantOf } from "./tenants";

/** On a Tenant: Capsule's own way to say the scope. The specification has a field for it, which wins. */
export const HOSTNAME_COLLISION_ANNOTATION = "ingress.capsule.clastix.io/hostname-collision-scope";

const INGRESSES = { apiGroups: ["networking.k8s.io"], apiVersions: ["v1"], resources: ["ingresses"] } as const;

/** Look-ups and candidates for one Ingress; what needs more is refused, so that no request occupies the operator. */
const MAX_COMPARISONS = 50_000;

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
  return {
    name: "ingresses.capsule.clastix.io",
    type: "validating",
    rules: [{ ...INGRESSES, operations: ["CREATE", "UPDATE"], scope: "Namespaced" }],
    failurePolicy: "Fail",
    namespaceSelector: { matchExpressions: [{ key: HOSTNAME_COLLISION_LABEL, operator: "Exists" }] },
    matchConditions: [
      { name: "changes-its-specification", expression: "oldObject == null || object.spec != oldObject.spec" },
    ],
    timeoutSeconds: 5,
    sideEffects: "None",
    review: ({ object, oldObject, namespace }, view) => {
      const comparison = comparisonIn(namespace, view);
      if (object === undefined || comparison === undefined) return { allowed: true };
      const { tenant, scope } = comparison;
      const before = oldObject === undefined ? new Map() : endpointsOf(oldObject).all;
      const { all, isCut } = endpointsOf(object);
      const added = [...all].flatMap(([text, endpoint]) => (before.has(text) ? [] : [endpoint]));
      // Two that come within the lag of the cache are decided afterwards: see `LateCollisions`.
      const [taken] = isCut ? ["too many" as const] : rivalsOf(added, object, comparison);
      if (taken === "too many") {
        return { allowed: false, message: "an Ingress has too many host names and paths to be compared: use several" };
      }
      if (taken === undefined) return { allowed: true };
      const tenantScope = `the tenant ${tenant.metadata.name}`;
      const within = { Cluster: "the cluster", Tenant: tenantScope, Namespace: "this namespace" }[scope];
      return { allowed: false, message: `another Ingress in ${within} has ${textOf(taken.endpoint)} already` };
    },
  };
}

interface Comparison {
  tenant: LiveTenant;
  scope: Exclude<Scope, "Disabled">;
  view: AdmissionView;
}

/** Another Ingress that takes requests for the same endpoint. */
export interface Rival {
  endpoint: Endpoint;
  ingress: LiveObject;
}

/** How Ingresses of a namespace are compared with others; `undefined` where they are not. */
export function comparisonIn(namespace: string, view: AdmissionView): Comparison | undefined {
  const tenant = tenantOf(namespace, view);
  const scope = (tenant && collisionScope(tenant)) ?? "Disabled";
  return tenant === undefined || scope === "Disabled" ? undefined : { tenant, scope, view };
}

/** Other Ingresses that have one of the endpoints within the scope; `too many` ends them where that takes too long to tell. */
export function* rivalsOf(
  endpoints: readonly Endpoint[],
  { metadata }: Manifest,
  { tenant, scope, view }: Comparison,
): Generator<Rival | "too many"> {
  const own = objectKey(metadata);
  const { namespace = "" } = metadata;
  const namespaces =
    scope === "Tenant"
      ? view.byIndex("namespaces", "tenant", tenant.metadata.name).map(({ metadata: { name } }) => name)
      : [namespace];
  const candidates = function* (key: string): Iterable<LiveObject[]> {
    if (scope === "Cluster") yield view.byIndex("ingresses", "endpoint", key);
    else for (const one of namespaces) yield view.byIndex("ingresses", "localEndpoint", `${one} ${key}`);
  };
  // In a namespace of no tenant, an Ingress is an administrator's.
  const isRival = (other: LiveObject) =>
    objectKey(other.metadata) !== own && tenantNameOf(other.metadata.namespace ?? "", view) !== undefined;
  let comparisons = 0;
  for (const endpoint of endpoints) {
    for (const key of rivalKeysOf(endpoint)) {
      for (const found of candidates(key)) {
        comparisons += 1 + found.length;
        if (comparisons > MAX_COMPARISONS) return yield "too many";
        for (const ingress of found) if (isRival(ingress)) yield { endpoint, ingress };
      }
    }
  }
}
