import type { LiveObject } from "../../../providers/kubernetes/index";
import type { Maintenance } from "../../contract/index";
import { indexedName, TENANT_LABEL } from "./labels";
import { hasRights, presentNamespaces, surplusNamespaces } from "./namespaces";
import { enforcementProbe, isEnforcedFor, isRestricted } from "./policies/tenant-policy";
import type { CapsuleTenant } from "./schema";

/*
 * An owner gets rights in a namespace only when the API server has been seen to enforce the tenant's policy there and to
 * count its quotas. A policy holds up to a second after its binding is made, a quota from when its status has amounts.
 */

/** On a namespace: the UID of the tenant whose policy the API server has been seen to enforce in it. */
const ENFORCED_ANNOTATION = "kindstack.dev/enforced-tenant";
const ENFORCEMENT_MANAGER = "kindstack-enforcement";

/** A policy is enforced a second after its binding is made, as a rule; where no server enforces it, never. */
const PROBE_INTERVAL_MS = { min: 250, max: 5_000 };

/** Whether a namespace gets its RoleBindings. Rights that are given stay: later restrictions apply to them. */
export function mayHaveRights(
  tenant: CapsuleTenant,
  namespace: string,
  { owned, watched }: { owned: readonly LiveObject[]; watched: readonly LiveObject[] },
): boolean {
  if (hasRights(namespace, owned)) return true;
  const all = [...watched, ...owned];
  if (surplusNamespaces(tenant, all).has(namespace)) return false;
  const isEnforced = all.some(
    (object) => object.kind === "Namespace" && object.metadata.name === namespace && isEnforcedIn(tenant, object),
  );
  return isEnforced && isCountedIn(tenant, namespace, owned);
}

/** Whether the API server has been seen to enforce the tenant's policy in this namespace, if it has any. */
function isEnforcedIn(tenant: CapsuleTenant, { metadata }: LiveObject): boolean {
  return !isRestricted(tenant) || metadata.annotations?.[ENFORCED_ANNOTATION] === tenant.metadata.uid;
}

/** Whether the API server counts what all quotas of the tenant limit: until then it refuses nothing, or everything. */
function isCountedIn({ metadata, spec }: CapsuleTenant, namespace: string, owned: readonly LiveObject[]) {
  return (spec.resourceQuotas ?? []).every(({ hard = {} }, index) => {
    const quota = owned.find(
      (object) =>
        object.kind === "ResourceQuota" &&
        object.metadata.namespace === namespace &&
        object.metadata.name === indexedName(metadata.name, index),
    ) as (LiveObject & { status?: { hard?: object } }) | undefined;
    const counted = quota?.status?.hard ?? {};
    return Object.keys(hard).every((resource) => resource in counted);
  });
}

/**
 * Asks the API server whether it enforces the tenant's policy in the namespaces whose owner waits for it, and notes where
 * it does. That is a change of the namespace, which leads to the update that gives the rights.
 */
export async function noteEnforcement(
  tenant: CapsuleTenant,
  { owned, apply, tryOut }: Maintenance,
): Promise<{ requeueAfterMs: number } | undefined> {
  if (!isRestricted(tenant)) return undefined;
  const waiting = presentNamespaces(owned).filter(
    (object) =>
      object.metadata.labels?.[TENANT_LABEL] === tenant.metadata.name &&
      !hasRights(object.metadata.name, owned) &&
      !isEnforcedIn(tenant, object),
  );
  const isEnforced = await Promise.all(
    waiting.map(async ({ apiVersion, kind, metadata: { name, uid } }) => {
      const refusal = await tryOut(enforcementProbe(name));
      if (refusal === undefined || !isEnforcedFor(tenant, refusal)) return false;
      const annotations = { [ENFORCED_ANNOTATION]: tenant.metadata.uid };
      await apply({ apiVersion, kind, metadata: { name, uid, annotations } }, ENFORCEMENT_MANAGER);
      return true;
    }),
  );
  if (isEnforced.every((enforced) => enforced)) return undefined;
  const binding = owned.find(({ kind }) => kind === "ValidatingAdmissionPolicyBinding");
  const waitedMs = Date.now() - Date.parse(binding?.metadata.creationTimestamp ?? "");
  return { requeueAfterMs: Math.min(Math.max(waitedMs / 4 || 0, PROBE_INTERVAL_MS.min), PROBE_INTERVAL_MS.max) };
}
