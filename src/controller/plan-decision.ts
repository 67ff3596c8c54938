import type { LiveObject } from "../../providers/kubernetes/client";
import { type Approval, expiryOf } from "../../stacks/contract/approval";
import { mayApprove } from "../../stacks/contract/author-policy";
import { type AnyKind, kindName } from "../../stacks/contract/kind";
import type { ApprovalRecord } from "../../stacks/contract/object";

/** What an approval or a rejection that holds says. */
export type PlanDecision = ReturnType<typeof asDecision>;

/** What tells one decision from the next, and from none. */
export function describeDecision(decision: PlanDecision | undefined): string | undefined {
  return decision && [decision.at, decision.decision, decision.approver].join(" ");
}

/** `by alice: CHG-4711 (sha256:…)` */
export function describeApproval({ approver, digest, reason }: ApprovalRecord): string {
  return `by ${approver}${reason === undefined ? "" : `: ${reason}`} (${digest})`;
}

/** The digests of the plans that an approval names. */
export function digestsOf({ digest, digests = [] }: Approval["spec"]): readonly string[] {
  return digest === undefined ? digests : [digest];
}

/** Whether an approval names this object, or lists digests of several plans: a digest belongs to one object. */
export function isOf({ spec, metadata }: Approval, kind: AnyKind, object: Pick<LiveObject, "metadata">): boolean {
  if (spec.object === undefined) return true;
  const { kind: name, namespace, name: objectName } = spec.object;
  const isIn =
    object.metadata.namespace === undefined || (namespace ?? metadata.namespace) === object.metadata.namespace;
  return isIn && name === kindName(kind) && objectName === object.metadata.name;
}

/** @param digest of the plan that is decided on */
export function asDecision(approval: Approval, digest: string, authors: readonly string[] | undefined) {
  const { decision, approver, reason } = approval.spec;
  const isIgnored = decision === "Approve" && !mayApprove(authors, approver);
  return {
    decision: isIgnored ? ("Ignored" as const) : decision,
    approver,
    ...(reason !== undefined && { reason }),
    /** When it was made. */
    at: approval.metadata.creationTimestamp ?? "",
    digest,
    /** In ms since 1970. */
    expiresAt: expiryOf(approval),
  };
}
