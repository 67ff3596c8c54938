import type { LiveObject } from "../../../providers/kubernetes/index";
import type { Maintenance } from "../../contract/index";
import { ROLE_BINDING_LABEL } from "./labels";
import { madeInNamespaces, presentNamespaces } from "./namespaces";
import type { CapsuleTenant } from "./schema";

/*
 * Who loses the rights that a Tenant gives keeps what they made with them: bindings to others or themselves, and tokens of
 * ServiceAccounts. No object says who made it, so all are told of.
 */

interface Subject {
  kind: string;
  name: string;
  namespace?: string;
}

const SUBJECTS = "subjects of RoleBindings";
const MAX_NAMED = 20;

/** Tells of bindings in the tenant's namespaces that are not the Tenant's, once for each subject that loses its rights. */
export async function tellOfDismissed(
  tenant: CapsuleTenant,
  { owned, list, memory, warn }: Pick<Maintenance, "owned" | "list" | "memory" | "warn">,
): Promise<void> {
  const bindings = madeInNamespaces(tenant, owned).filter(
    ({ kind, metadata }) => kind === "RoleBinding" && metadata.labels?.[ROLE_BINDING_LABEL] !== undefined,
  );
  if (bindings.length === 0) return; // they are about to be made
  const before = memory.get(SUBJECTS) as ReadonlySet<string> | undefined;
  const now = new Set(bindings.flatMap(subjectsOf));
  memory.set(SUBJECTS, now);
  const dismissed = [...(before ?? [])].filter((subject) => !now.has(subject));
  if (dismissed.length === 0) return;
  const made = new Set(bindings.map(({ metadata }) => metadata.uid));
  const namespaces = presentNamespaces(owned).map(({ metadata }) => metadata.name);
  const type = { apiVersion: "rbac.authorization.k8s.io/v1", kind: "RoleBinding" };
  const all = (await Promise.all(namespaces.map((namespace) => list(type, namespace)))).flat();
  const others = all.filter(({ metadata }) => !made.has(metadata.uid));
  const named = others.slice(0, MAX_NAMED).map(({ metadata }) => `${metadata.namespace}/${metadata.name}`);
  const more = others.length > named.length ? ` and ${others.length - named.length} more` : "";
  const rest = named.length > 0 ? `RoleBindings ${named.join(", ")}${more}, and tokens` : "tokens";
  const message =
    `${dismissed.join(", ")} lost the rights of the tenant, and may have left in its namespaces: ${rest} of ServiceAccounts. ` +
    "Look through them; tokens end with their ServiceAccount";
  warn(tenant as CapsuleTenant & LiveObject, "SubjectDismissed", message);
}

function subjectsOf(binding: LiveObject): string[] {
  const { subjects = [] } = binding as { subjects?: Subject[] };
  return subjects.map(
    ({ kind, name, namespace }) => `${kind} ${namespace === undefined ? name : `${namespace}/${name}`}`,
  );
}
