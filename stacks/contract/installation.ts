import type { Manifest } from "../../providers/kubernetes/client";
import { installedPolicy } from "./validating-policy";

/** On all that is installed outside of the operator's namespace: the name of that namespace. */
export const INSTALLED_IN_LABEL = "kindstack.dev/installed-in";

/** What each message on a second installation has in common. */
export const ONE_INSTALLATION = "and a cluster has one installation";

const ROLES = { apiGroups: ["rbac.authorization.k8s.io"], resources: ["clusterroles", "clusterrolebindings"] };
const DEFINITIONS = { apiGroups: ["apiextensions.k8s.io"], resources: ["customresourcedefinitions"] };

const IS_LABELLED = `has(object.metadata.labels) && '${INSTALLED_IN_LABEL}' in object.metadata.labels`;
const namespaceOf = (object: string) => `${object}.metadata.?labels[?'${INSTALLED_IN_LABEL}'].orValue('')`;

/**
 * The policy that guards an installation, as long as its service account exists: another one gets no rights, takes over no
 * CRD, and deletes none; nor does a CRD lose its label by an apply without it. Policies cannot guard policies and bindings, whose names differ by installation for that reason.
 */
export function installationPolicy(account: { name: string; namespace: string }): Manifest[] {
  const isDeletion = "request.operation == 'DELETE'";
  const installed = `'Kindstack is installed in the namespace ' + params.metadata.namespace + ', ${ONE_INSTALLATION}`;
  return installedPolicy(
    "installation.kindstack.dev",
    {
      paramKind: { apiVersion: "v1", kind: "ServiceAccount" },
      rules: [
        { ...ROLES, scope: "Cluster" },
        { ...DEFINITIONS, scope: "Cluster", operations: ["CREATE", "UPDATE", "DELETE"] },
      ],
      variables: {},
      validations: [
        {
          expression: `${isDeletion} || ${namespaceOf("object")} == '' || ${namespaceOf("object")} == params.metadata.namespace || (oldObject != null && ${namespaceOf("object")} == ${namespaceOf("oldObject")})`,
          messageExpression: `${installed}: upgrade that one, or uninstall it first'`,
        },
        {
          expression: `request.operation != 'UPDATE' || ${namespaceOf("oldObject")} != params.metadata.namespace || (${IS_LABELLED})`,
          messageExpression: `${installed}, which this belongs to: apply what "kindstack crds --namespace ' + params.metadata.namespace + '" prints; or, to give it up, leave the label ${INSTALLED_IN_LABEL} empty'`,
        },
        {
          expression: `!(${isDeletion}) || ${namespaceOf("oldObject")} != params.metadata.namespace`,
          messageExpression: `${installed}, which needs this CRD: uninstall that one, its namespace first; or, to remove this kind alone, release it first: kubectl label --overwrite crd ' + oldObject.metadata.name + ' ${INSTALLED_IN_LABEL}='`,
        },
      ],
    },
    { paramRef: { ...account, parameterNotFoundAction: "Allow" } },
  );
}
