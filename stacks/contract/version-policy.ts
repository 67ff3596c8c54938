import type { Manifest } from "../../providers/kubernetes/client";
import { DEFINITION_TYPE } from "./crd";
import { type AnyKind, kindName } from "./kind";
import { installedPolicy } from "./validating-policy";

/**
 * For each kind with several versions, what refuses writes in another version than the stored one while the CRD names no
 * conversion: the API server would store the object as it is, without the fields that the stored version does not have.
 */
export function versionPolicies(kinds: readonly AnyKind[]): Manifest[] {
  return kinds.flatMap((kind) => {
    const versions = (kind.capabilities.versions ?? []).map(({ version }) => version);
    if (versions.length === 0) return [];
    const name = `versions.${kindName(kind)}`;
    return installedPolicy(
      name,
      {
        rules: [{ apiGroups: [kind.group], apiVersions: versions, resources: [kind.plural], scope: kind.scope }],
        paramKind: DEFINITION_TYPE,
        variables: {},
        validations: [
          {
            expression: "params.spec.?conversion.?strategy.orValue('None') == 'Webhook'",
            messageExpression: `'no operator converts ${kind.kind} yet: use ${kind.group}/${kind.version}, or start the operator with admission'`,
          },
        ],
      },
      { paramRef: { name: kindName(kind), parameterNotFoundAction: "Deny" } },
    );
  });
}
