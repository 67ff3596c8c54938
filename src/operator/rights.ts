import { review, reviewOwnAccess } from "../../providers/kubernetes/access-review";
import type { KubernetesClient } from "../../providers/kubernetes/client";
import type { PolicyRule } from "../../stacks/contract/capabilities";
import { type AnyKind, kindName } from "../../stacks/contract/kind";
import { operatorRules } from "../../stacks/contract/rbac";

type Reviewer = Pick<KubernetesClient, "json">;

interface Right {
  group: string;
  resource: string;
  verb: string;
  name?: string;
}

/**
 * The kinds that the operator has all rights for; with one missing, its informers would wait without end, and all kinds with
 * them. Asks for a summary of the operator's rights first, which answers for most of them in one request.
 */
export async function permittedKinds(
  client: Reviewer,
  kinds: readonly AnyKind[],
  report: (kind: string, reason: string) => void,
): Promise<readonly AnyKind[]> {
  // The operator's rights in all namespaces, asked for in a namespace without a Role of the operator.
  const inOne = { namespace: "kube-node-lease" };
  type Status = { resourceRules?: PolicyRule[] };
  const rules = await review<Status>(client, "authorization.k8s.io/v1", "SelfSubjectRulesReview", inOne);
  const summary = rules?.resourceRules ?? [];
  const permitted: AnyKind[] = [];
  for (const kind of kinds) {
    const doubtful = rightsOf(operatorRules([kind])).filter((right) => !summary.some((rule) => grants(rule, right)));
    const allowed = await Promise.all(doubtful.map((right) => isAllowed(client, right)));
    const missing = doubtful.filter((_, index) => !allowed[index]);
    if (missing.length === 0) permitted.push(kind);
    else report(kindName(kind), `the operator may not ${describe(missing)}; ${GRANT}`);
  }
  if (permitted.length === 0)
    throw new Error(`no kind can be served: the operator has the rights for none; ${GRANT}. ${OTHER}`);
  return permitted;
}

const GRANT = "install Kindstack with this kind (kindstack install --print --kinds …) and restart the operator";

const OTHER =
  "Another installation has them where this names a namespace: kubectl get crd plans.kindstack.dev -L kindstack.dev/installed-in";

function rightsOf(rules: readonly PolicyRule[]): Right[] {
  return rules.flatMap(({ apiGroups, resources, resourceNames, verbs }) => {
    const names = resourceNames?.map((name) => ({ name })) ?? [{}];
    const objects = apiGroups.flatMap((group) => resources.map((resource) => ({ group, resource })));
    return objects.flatMap((object) => verbs.flatMap((verb) => names.map((name) => ({ ...object, verb, ...name }))));
  });
}

function grants({ apiGroups, resources, resourceNames, verbs }: PolicyRule, { group, resource, verb, name }: Right) {
  const has = (values: readonly string[] | undefined, value: string) =>
    values?.some((one) => one === "*" || one === value) ?? false;
  const named = !resourceNames?.length || (name !== undefined && resourceNames.includes(name));
  return named && has(apiGroups, group) && has(resources, resource) && has(verbs, verb);
}

function isAllowed(client: Reviewer, { resource: path, ...right }: Right): Promise<boolean> {
  const [resource, subresource] = path.split("/");
  return reviewOwnAccess(client, { ...right, resource, subresource });
}

/** `create, patch pods; get nodes` */
function describe(rights: readonly Right[]): string {
  const targetOf = ({ group, resource, name }: Right) =>
    `${resource}${group && `.${group}`}${name === undefined ? "" : ` ${name}`}`;
  return [...Map.groupBy(rights, targetOf)]
    .map(([target, of]) => `${[...new Set(of.map(({ verb }) => verb))].join(", ")} ${target}`)
    .join("; ");
}
