import { findCondition, type NewCondition } from "../../stacks/contract/condition";
import { BACKEND_REASONS } from "../backend/ownership";
import type { Action } from "./action";
import { newsAmong, notSo } from "./conditions";
import type { Step } from "./context";
import type { Outcome } from "./outcome";

/** What comes of an action that needs the state, unless that is known to be this operator's; `undefined` for any other. */
export async function refuse(
  { context, object, state }: Step<"object" | "state", "backend">,
  { type }: Action,
): Promise<Outcome | undefined> {
  if (type !== "update" && type !== "finish" && type !== "destroy" && type !== "compare") return undefined;
  const problem = await context.backend.problem();
  if (problem === undefined) return undefined;
  const failures = [problem];
  if (type === "update") return { type: "updateFailed", object, failures, partial: undefined };
  if (type === "finish") return { type: "finishFailed", object, failures };
  if (type === "destroy") return { type: "destroyFailed", object, failures, deleted: state.blockers?.deleted ?? [] };
  return { type: "compared", resources: [], failures };
}

/** That an object at rest is not looked after while the backend is not this operator's, or is again. */
export function backendConditions({ context, facts }: Step<"facts", "backend">): NewCondition[] {
  const { refusal } = context.backend;
  const { metadata, status } = facts.object;
  if (refusal !== undefined) {
    if (metadata.deletionTimestamp !== undefined) return []; // nothing is left of it to look after
    const { reason, message } = refusal;
    const stalled: NewCondition = { type: "Stalled", status: "True", reason, message };
    return newsAmong([stalled], status.conditions);
  }
  const stalled = findCondition(status.conditions, "Stalled");
  return stalled !== undefined && BACKEND_REASONS.some((reason) => reason === stalled.reason) ? [notSo("Stalled")] : [];
}
