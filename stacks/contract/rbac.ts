import type { ObjectType } from "../../providers/kubernetes/client";
import { CLUSTER_UID_RULE } from "../../providers/kubernetes/cluster";
import { groupOf } from "../../providers/kubernetes/object-types";
import { DEFINITIONS_RULE } from "../../providers/kubernetes/type-absence";
import { type KindAdmission, webhookConfigurationKind } from "./admission";
import type { NamedType, PolicyRule } from "./capabilities";
import { type AnyKind, kindName } from "./kind";
import { OBJECT_ADMISSION, objectAdmission } from "./object-admission";
import { PROPOSE_RIGHT } from "./plan-policy";

/** A custom resource is read and watched; its finalizer is set and removed by patches. */
const KIND_VERBS = ["get", "list", "watch", "patch"];
const STATUS_VERBS = ["patch"];
/** What a program refers to is read, and watched. */
const READ_VERBS = ["get", "list", "watch"];
/** What a program makes is applied, read, watched for drift, and deleted. A server-side apply may be a creation. */
const OWNED_VERBS = ["get", "list", "watch", "create", "patch", "delete"];

/** Plans are written, which takes a right of its own (plan-policy.ts); approvals are read, and removed when they expire. */
const PLAN_RULES: readonly PolicyRule[] = [
  {
    apiGroups: [PROPOSE_RIGHT.group],
    resources: [PROPOSE_RIGHT.resource],
    verbs: ["list", "watch", "create", "patch", "delete", PROPOSE_RIGHT.verb],
  },
  { apiGroups: [PROPOSE_RIGHT.group], resources: ["approvals"], verbs: ["list", "watch", "delete"] },
];

/** To find out who sent a request, and what they may do. */
export const REVIEWS: readonly PolicyRule[] = [
  { apiGroups: ["authentication.k8s.io"], resources: ["tokenreviews"], verbs: ["create"] },
  { apiGroups: ["authorization.k8s.io"], resources: ["subjectaccessreviews"], verbs: ["create"] },
];

/**
 * All that an operator of these kinds may do in a cluster; nothing else is asked for.
 *
 * @param variables of its environment that are `true`
 */
export function operatorRules(kinds: readonly AnyKind[], variables: readonly string[] = []): PolicyRule[] {
  return merged([...kinds.flatMap((kind) => kindRules(kind, kinds, variables)), ...OPERATOR_RULES]);
}

/** What the operator needs for one of its kinds. */
export function kindRules(
  kind: AnyKind,
  kinds: readonly AnyKind[],
  variables: readonly string[] = [],
): readonly PolicyRule[] {
  const { reads = {}, permissions = [], optionalPermissions } = kind.capabilities;
  return [
    { apiGroups: [kind.group], resources: [kind.plural], verbs: KIND_VERBS },
    { apiGroups: [kind.group], resources: [`${kind.plural}/status`], verbs: STATUS_VERBS },
    ...kind.owns.map((type) => ({ ...resourceOf(type, kinds), verbs: OWNED_VERBS })),
    ...Object.values(reads).map((type) => ({ ...resourceOf(type, kinds), verbs: READ_VERBS })),
    ...permissions,
    ...variables.flatMap((variable) => optionalPermissions?.[variable] ?? []),
  ];
}

/** What the operator needs for all kinds. */
export const OPERATOR_RULES: readonly PolicyRule[] = [
  // The operator tells programs in which cluster they run.
  CLUSTER_UID_RULE,
  // A namespace may set the mode of the objects in it.
  { apiGroups: [""], resources: ["namespaces"], verbs: READ_VERBS },
  ...PLAN_RULES,
  // CRDs show whether a definition is another operator's, and whether an unserved type still exists.
  DEFINITIONS_RULE,
  { apiGroups: ["events.k8s.io"], resources: ["events"], verbs: ["create", "patch"] },
  ...REVIEWS,
];

/** The Secret of the certificate with which an operator serves previews, and of its CA. */
export const INSPECTION_SECRET = "kindstack-preview-tls";

/**
 * What an operator that serves admission for these kinds needs besides.
 *
 * @param role the ClusterRole with these rules, which owns what the operator makes for admission, and so is read by it
 */
export function admissionRules(kinds: readonly AnyKind[], role: string): PolicyRule[] {
  return merged([
    ...kinds.flatMap((kind) => kindAdmissionRules(kind, kinds)),
    ...objectAdmissionRules(),
    { apiGroups: ["rbac.authorization.k8s.io"], resources: ["clusterroles"], resourceNames: [role], verbs: ["get"] },
  ]);
}

/** What admission of one kind needs. */
export function kindAdmissionRules(kind: AnyKind, kinds: readonly AnyKind[]): readonly PolicyRule[] {
  const { admission, versions } = kind.capabilities;
  return [
    ...(admission === undefined ? [] : admissionRulesOf(kindName(kind), admission, kinds)),
    ...(versions === undefined
      ? []
      : [
          // The CRD names the webhook that converts between versions.
          { ...DEFINITIONS_RULE, resourceNames: [kindName(kind)], verbs: ["patch"] },
          // A creation in another version is tried by a dry run in the stored one.
          { apiGroups: [kind.group], resources: [kind.plural], verbs: ["create"] },
        ]),
  ];
}

/** What admission needs for all kinds, besides its own role. */
export const objectAdmissionRules = (): readonly PolicyRule[] =>
  admissionRulesOf(OBJECT_ADMISSION, objectAdmission([]), []);

/** Admission objects and webhook configurations are applied by name, and watched by type. */
function admissionRulesOf(name: string, admission: KindAdmission, kinds: readonly AnyKind[]): PolicyRule[] {
  const configurations = new Set(admission.webhooks().map(({ type }) => webhookConfigurationKind(type)));
  const objects = [
    ...admission.objects(),
    ...[...configurations].map((type) => ({
      apiVersion: "admissionregistration.k8s.io/v1",
      kind: type,
      metadata: { name },
    })),
  ];
  const isOwned = (object: ObjectType) =>
    kinds.some(({ owns }) =>
      owns.some(({ apiVersion, kind }) => apiVersion === object.apiVersion && kind === object.kind),
    );
  return objects
    .filter((object) => !isOwned(object))
    .flatMap((object) => [
      { ...resourceOf(object, kinds), verbs: ["list", "watch"] },
      { ...resourceOf(object, kinds), resourceNames: [object.metadata.name ?? ""], verbs: ["create", "patch"] },
    ]);
}

/** Rules of the same group, names and verbs become one; each resource stands in it once. */
function merged(rules: readonly PolicyRule[]): PolicyRule[] {
  const byRight = Map.groupBy(rules, ({ apiGroups, resourceNames = [], verbs }) =>
    JSON.stringify([apiGroups, resourceNames, verbs]),
  );
  return [...byRight.values()].map((alike) => {
    const resources = new Set(alike.flatMap((rule) => rule.resources));
    return { ...(alike[0] as PolicyRule), resources: [...resources] };
  });
}

/** The resource that serves a type: as it says, as one of our kinds, or by the plural that Kubernetes derives from a kind's name. */
export function resourceOf(
  { apiVersion, kind, plural }: NamedType,
  kinds: readonly AnyKind[],
): Pick<PolicyRule, "apiGroups" | "resources"> {
  const group = groupOf(apiVersion);
  const own = kinds.find((one) => one.group === group && one.kind === kind)?.plural;
  const usual = `${kind.toLowerCase().replace(/y$/, "ie").replace(/s$/, "se")}s`;
  return { apiGroups: [group], resources: [plural ?? own ?? usual] };
}
