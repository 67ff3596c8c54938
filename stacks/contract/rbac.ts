import { CLUSTER_UID_RULE } from "../../providers/kubernetes/cluster";
import { webhookConfigurationKind } from "./admission";
import { type AnyKind, kindName } from "./kind";
import type { PolicyRule } from "./policy-rule";

/** A custom resource is read and watched; its finalizer is set and removed by patches. */
const KIND_VERBS = ["get", "list", "watch", "patch"];
const STATUS_VERBS = ["patch"];
/** What a program makes is applied, read, watched for drift, and deleted. A server-side apply may be a creation. */
const OWNED_VERBS = ["get", "list", "watch", "create", "patch", "delete"];

/** Asked to find out who may read the operator's metrics. */
const REVIEWS: readonly PolicyRule[] = [
  { apiGroups: ["authentication.k8s.io"], resources: ["tokenreviews"], verbs: ["create"] },
  { apiGroups: ["authorization.k8s.io"], resources: ["subjectaccessreviews"], verbs: ["create"] },
];

/**
 * All that an operator of these kinds may do in a cluster: what follows from each kind and from the types that it owns,
 * what a kind declares besides (`permissions`), its definition (to tell another operator's from its own), the Events that
 * people read, and the questions who may read its metrics. Nothing else is asked for.
 */
export function operatorRules(kinds: readonly AnyKind[]): PolicyRule[] {
  const rules = kinds.flatMap((kind): PolicyRule[] => [
    { apiGroups: [kind.group], resources: [kind.plural], verbs: KIND_VERBS },
    { apiGroups: [kind.group], resources: [`${kind.plural}/status`], verbs: STATUS_VERBS },
    ...kind.owns.map((type) => ({
      apiGroups: [groupOf(type.apiVersion)],
      resources: [resourceOf(type.kind)],
      verbs: OWNED_VERBS,
    })),
    ...(kind.capabilities.permissions ?? []),
  ]);
  // The operator tells programs in which cluster they run.
  rules.push(CLUSTER_UID_RULE, {
    apiGroups: ["apiextensions.k8s.io"],
    resources: ["customresourcedefinitions"],
    resourceNames: kinds.map(kindName),
    verbs: ["get"],
  });
  rules.push({ apiGroups: ["events.k8s.io"], resources: ["events"], verbs: ["create", "patch"] }, ...REVIEWS);
  return merged(rules);
}

/**
 * What an operator that serves admission for these kinds needs besides.
 *
 * @param role the ClusterRole with these rules, which owns what the operator makes for admission, and so is read by it
 */
export function admissionRules(kinds: readonly AnyKind[], role: string): PolicyRule[] {
  const own = { apiGroups: ["rbac.authorization.k8s.io"], resources: ["clusterroles"], resourceNames: [role] };
  const converted = kinds.filter(({ capabilities }) => capabilities.versions !== undefined).map(kindName);
  const definitions = { apiGroups: ["apiextensions.k8s.io"], resources: ["customresourcedefinitions"] };
  return merged([
    ...kinds.flatMap(admissionRulesOf),
    // The API server is told in the definition who converts between versions.
    ...(converted.length > 0 ? [{ ...definitions, resourceNames: converted, verbs: ["patch"] }] : []),
    { ...own, verbs: ["get"] },
  ]);
}

/**
 * What a kind's admission asks for: its objects and its webhook configurations are applied by name, and watched by type,
 * since a watch knows no list of names.
 */
function admissionRulesOf(kind: AnyKind): PolicyRule[] {
  const { admission } = kind.capabilities;
  if (admission === undefined) return [];
  const objects = [
    ...admission.objects(),
    ...[...new Set(admission.webhooks().map(({ type }) => webhookConfigurationKind(type)))].map((type) => ({
      apiVersion: "admissionregistration.k8s.io/v1",
      kind: type,
      metadata: { name: kindName(kind) },
    })),
  ];
  return objects.flatMap(({ apiVersion, kind: type, metadata: { name = "" } }) => {
    const resource = { apiGroups: [groupOf(apiVersion)], resources: [resourceOf(type)] };
    if (kind.owns.some((owned) => owned.apiVersion === apiVersion && owned.kind === type)) return [];
    return [
      { ...resource, verbs: ["list", "watch"] },
      { ...resource, resourceNames: [name], verbs: ["create", "patch"] },
    ];
  });
}

/** Rules of the same group, names and verbs become one; each resource stands in it once. */
function merged(rules: readonly PolicyRule[]): PolicyRule[] {
  const byRight = new Map<string, PolicyRule>();
  for (const rule of rules) {
    const key = JSON.stringify([rule.apiGroups, rule.resourceNames ?? [], rule.verbs]);
    const known = byRight.get(key);
    const resources = [...new Set([...(known?.resources ?? []), ...rule.resources])];
    byRight.set(key, { ...rule, resources });
  }
  return [...byRight.values()];
}

function groupOf(apiVersion: string): string {
  return apiVersion.includes("/") ? (apiVersion.split("/")[0] ?? "") : "";
}

/** The resource that serves a built-in type: the plural that Kubernetes itself derives from a kind's name. */
function resourceOf(kind: string): string {
  const singular = kind.toLowerCase();
  if (singular.endsWith("s")) return `${singular}es`;
  if (singular.endsWith("y")) return `${singular.slice(0, -1)}ies`;
  return `${singular}s`;
}
