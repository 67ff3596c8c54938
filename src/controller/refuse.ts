import { findCondition, type NewCondition } from "../../stacks/contract/condition";
import { BACKEND_REASONS } from "../backend/ownership";
import type { Action } from "./action";
import { newsAmong, notSo } from "./conditions";
import type { Step } from "./context";
import type { Facts } from "./facts";
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

/** An action that leaves an object at rest also tells that nothing is looked after while the backend is not this operator's. */
export function tellRefusal(facts: Pick<Facts, "object" | "stack">, action: Action): Action {
  if (action.type !== "nothing" && action.type !== "backOff") return action;
  return { ...action, conditions: [...refusalNews(facts), ...action.conditions] };
}

function refusalNews({
  object: { metadata, status },
  stack: { refusal },
}: Pick<Facts, "object" | "stack">): NewCondition[] {
  if (refusal !== undefined) {
    if (metadata.deletionTimestamp !== undefined) return []; // nothing is left of it to look after
    const { reason, message } = refusal;
    return newsAmong([{ type: "Stalled", status: "True", reason, message }], status.conditions);
  }
  const stalled = findCondition(status.conditions, "Stalled");
  return stalled !== undefined && BACKEND_REASONS.some((reason) => reason === stalled.reason) ? [notSo("Stalled")] : [];
}
