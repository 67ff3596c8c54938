import type { Manifest } from "../../providers/kubernetes/client";
import { MAX_APPROVAL_DAYS } from "./approval";
import { installedPolicy } from "./validating-policy";

const GROUP = "kindstack.dev";

/** The rights that are no verbs of requests: to approve plans, and to write them. */
export const APPROVE_RIGHT = { verb: "approve", group: GROUP, resource: "plans" } as const;
export const PROPOSE_RIGHT = { verb: "propose", group: GROUP, resource: "plans" } as const;

/** Whether the user has a right, in CEL. @param place such as `namespace('a').`; empty for all namespaces */
export function hasRight({ verb, group, resource }: Record<"verb" | "group" | "resource", string>, place: string) {
  return `authorizer.group('${group}').resource('${resource}').${place}check('${verb}').allowed()`;
}

const IN_NAMESPACE = "namespace(request.namespace).";

/** What refuses approvals of those who may not approve or take another's name, and plans that the operator has not made. */
export function planPolicies(): Manifest[] {
  return [
    ...installedPolicy("approvals.kindstack.dev", {
      rules: [{ apiGroups: [GROUP], resources: ["approvals"], operations: ["CREATE"], scope: "Namespaced" }],
      variables: {},
      validations: [
        {
          expression: hasRight(APPROVE_RIGHT, IN_NAMESPACE),
          messageExpression: `'approving takes the right to approve plans.${GROUP} in the namespace ' + request.namespace`,
        },
        {
          expression: "object.spec.approver == request.userInfo.username",
          messageExpression: "'spec.approver must be your own name, ' + request.userInfo.username",
        },
        {
          expression:
            "!has(object.spec.expiresAt) || timestamp(object.spec.expiresAt) <= " +
            `timestamp(object.metadata.creationTimestamp) + duration('${MAX_APPROVAL_DAYS * 24}h')`,
          messageExpression: `'spec.expiresAt must be at most ${MAX_APPROVAL_DAYS} days from now'`,
          reason: "Invalid",
        },
      ],
    }),
    ...installedPolicy("plans.kindstack.dev", {
      rules: [{ apiGroups: [GROUP], resources: ["plans"], scope: "Namespaced" }],
      // What has owner references is released by the garbage collector; finalizers may go.
      matchConditions: [
        {
          name: "says-something-else",
          expression: "oldObject == null || object.spec != oldObject.spec || object.?status != oldObject.?status",
        },
      ],
      variables: {},
      validations: [
        {
          expression: hasRight(PROPOSE_RIGHT, IN_NAMESPACE),
          messageExpression: "'plans are written by the operator alone'",
        },
      ],
    }),
  ];
}
