import { isDeepStrictEqual } from "node:util";
import { recordedAuthors } from "../../stacks/contract/author-policy";
import { findCondition } from "../../stacks/contract/condition";
import { MAX_TEXT } from "../../stacks/contract/plan";
import type { Step } from "./context";
import type { PlanDecision } from "./plan-decision";

/*
 * Who has made the change that a plan is of, where that restricts who may approve it. The object has names of a change also after it
 * was applied; then a plan of a drift, or of a new program, has no author.
 */

/** What stands in a plan for authors that nothing has recorded: then no user is known to be another one. */
const UNKNOWN = "[unknown]";

/**
 * @returns the users whose approvals are ignored; none where they are not known, and no approval counts; `undefined` where all
 *   approvals count
 */
export function authorsOf({
  context,
  object,
  facts,
}: Step<"object" | "facts", "kind" | "plans">): readonly string[] | undefined {
  const { kind, plans } = context;
  if (!plans?.authorMayNotApprove) return undefined;
  const { uid, generation } = facts.object.metadata;
  const authors = recordedAuthors(object) ?? [];
  const { stack, conditions } = facts.object.status;
  if (stack === undefined || !isDeepStrictEqual(stack.ignoreFields ?? [], facts.settings.ignoreFields)) return authors;
  const synced = findCondition(conditions, "Synced");
  if (synced?.observedGeneration !== generation) return authors;
  if (synced.status === "True") return undefined;
  const former = plans.get(kind, object)?.spec;
  // Without the plan that the condition tells of, the change may be anyone's.
  const isOfSame = former?.object.uid === uid && former.object.generation === generation;
  return isOfSame && former.cause.by === undefined ? undefined : authors;
}

/** Who has made the change, in a plan. */
export function describeAuthors(authors: readonly string[]): string {
  return authors.length === 0 ? UNKNOWN : authors.join(", ").slice(0, MAX_TEXT);
}

/** Why an approval has no effect, and what to do. */
export function describeIgnored({ approver }: PlanDecision, by: string | undefined): string {
  return by === undefined || by === UNKNOWN
    ? `the approval by ${approver} has no effect: it is not recorded who made the change; change the object once more`
    : `the approval by ${approver} has no effect: the change is by ${by}, and needs the approval of another user`;
}
