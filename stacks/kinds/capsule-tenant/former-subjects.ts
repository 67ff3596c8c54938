import Type from "typebox";
import type { LiveObject } from "../../../providers/kubernetes/index";
import type { KindCondition } from "../../contract/index";
import { jsonReader } from "./annotation-json";
import { indexedName, ROLE_BINDING_LABEL } from "./labels";
import { countedNamespaces } from "./namespaces";
import type { CapsuleTenant } from "./schema";

/*
 * Who had rights in a namespace by the tenant, and has them no longer, may have made RoleBindings and ServiceAccounts there,
 * which stay: no object says who made it. The names are kept on the namespace's first RoleBinding until someone has looked.
 */

/** On that RoleBinding: a list of names, as JSON. */
const FORMER_ANNOTATION = "kindstack.dev/former-subjects";
const readNames = jsonReader(Type.Array(Type.String()));
/** The last ones that are kept. */
const MAX_KEPT = 10;
const MAX_NAMED = 5;

export interface Subject {
  kind: string;
  name: string;
  apiGroup?: string;
  namespace?: string;
}

const nameOf = ({ kind, name, namespace }: Subject) =>
  namespace === undefined ? `${kind} ${name}` : `${kind} ${namespace}/${name}`;

/** The annotation for the first RoleBinding of a namespace, from its live RoleBindings; none where all have kept their rights. */
export function formerSubjects(
  tenant: CapsuleTenant,
  namespace: string,
  { owned, given }: { owned: readonly LiveObject[]; given: readonly Subject[] },
): { annotations?: Record<string, string> } {
  const known = bindingsIn([namespace], tenant, owned).flatMap((binding) => [
    ...keptBy(binding),
    ...((binding.subjects as Subject[] | undefined) ?? []).map(nameOf),
  ]);
  const still = new Set(given.map(nameOf));
  const former = [...new Set(known)].filter((name) => !still.has(name)).slice(-MAX_KEPT);
  return former.length === 0 ? {} : { annotations: { [FORMER_ANNOTATION]: JSON.stringify(former) } };
}

/** Tells of former subjects, and how to look for what they made. */
export function formerSubjectsCondition(tenant: CapsuleTenant, owned: readonly LiveObject[]): KindCondition {
  const type = "FormerSubjects";
  const namespaces = countedNamespaces(tenant.metadata.name, owned).map(({ metadata }) => metadata.name);
  const told = bindingsIn(namespaces, tenant, owned).filter((binding) => keptBy(binding).length > 0);
  if (told.length === 0) {
    return { type, status: "False", reason: "Settled", message: "no rights were taken in the namespaces" };
  }
  const some = (names: readonly string[]) => {
    const all = [...new Set(names)].sort();
    const more = all.length > MAX_NAMED ? ` and ${all.length - MAX_NAMED} more` : "";
    return all.slice(0, MAX_NAMED).join(", ") + more;
  };
  const [{ metadata: first } = { metadata: { name: "", namespace: "" } }] = told;
  return {
    type,
    status: "True",
    reason: "RightsTaken",
    message:
      `${some(told.flatMap(keptBy))} had rights in ${some(told.map(({ metadata }) => metadata.namespace ?? ""))}. RoleBindings and ` +
      "ServiceAccounts that they made there stay, and so do their tokens. Look for these: " +
      `kubectl get rolebindings,serviceaccounts -n ${first.namespace}. ` + // whatever labels a user gave them
      `Then end this notice: kubectl annotate rolebinding ${first.name} -n ${first.namespace} ${FORMER_ANNOTATION}-`,
  };
}

/** The RoleBindings that Kindstack made, by place and name: users may write the marks elsewhere. */
function bindingsIn(
  namespaces: readonly string[],
  { metadata: { name: tenant } }: CapsuleTenant,
  owned: readonly LiveObject[],
): LiveObject[] {
  return owned.filter(
    ({ kind, metadata: { name, namespace = "", labels } }) =>
      kind === "RoleBinding" &&
      namespaces.includes(namespace) &&
      name === indexedName(tenant, Number(labels?.[ROLE_BINDING_LABEL])),
  );
}

function keptBy({ metadata: { annotations } }: LiveObject): string[] {
  return readNames(annotations?.[FORMER_ANNOTATION]) ?? [];
}
