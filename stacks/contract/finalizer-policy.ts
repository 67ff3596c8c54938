import type { Manifest } from "../../providers/kubernetes/client";
import { DELETION_POLICY_ANNOTATION } from "./annotations";
import { type AnyKind, kindName } from "./kind";
import { FINALIZER } from "./object";
import { APPROVE_RIGHT, hasRight, PROPOSE_RIGHT } from "./plan-policy";
import { installedPolicy } from "./validating-policy";

const hasFinalizer = (object: string) => `'${FINALIZER}' in ${object}.metadata.?finalizers.orValue([])`;

/**
 * For each kind, what refuses that the finalizer is removed, but by the operator and by those who may approve: without it, an
 * object is gone, and no deletion waits for an approval. They come with the CRDs.
 */
export function finalizerPolicies(kinds: readonly AnyKind[]): Manifest[] {
  const { verb, group, resource } = APPROVE_RIGHT;
  return kinds.flatMap((kind) => {
    const isNamespaced = kind.scope === "Namespaced";
    const place = isNamespaced ? "namespace(request.namespace)." : "";
    const where = isNamespaced ? "'in the namespace ' + request.namespace" : "'cluster-wide'";
    return installedPolicy(`finalizer.${kindName(kind)}`, {
      rules: [{ apiGroups: [kind.group], resources: [kind.plural], scope: kind.scope, operations: ["UPDATE"] }],
      matchConditions: [
        { name: "removes-the-finalizer", expression: `${hasFinalizer("oldObject")} && !(${hasFinalizer("object")})` },
      ],
      variables: {},
      validations: [
        {
          expression: `${hasRight(PROPOSE_RIGHT, place)} || ${hasRight(APPROVE_RIGHT, place)}`,
          messageExpression:
            `'the finalizer ${FINALIZER} is removed by the operator, once the stack is destroyed. To keep what the object made, ` +
            `set ${DELETION_POLICY_ANNOTATION}: Orphan. To replace the object, keep its finalizers, or use kubectl apply. ` +
            `To remove the finalizer by hand takes the right to ${verb} ${resource}.${group} ' + ${where}`,
        },
      ],
    });
  });
}
