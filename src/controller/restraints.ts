import { findCondition, type NewCondition } from "../../stacks/contract/condition";
import { BACKEND_REASONS } from "../backend/ownership";
import type { Action, Gate } from "./action";
import { type Cause, newsAmong, notSo, pausedConditions, WAITS_FOR_APPROVAL } from "./conditions";
import { describeId } from "./describe";
import type { DriftFacts, Facts, ObjectFacts } from "./facts";

/** While an object is paused, its status says what would be done. */
export function pause({ object, settings, drift }: Pick<Facts, "object" | "settings" | "drift">): Action {
  const { status } = object;
  const synced = findCondition(status.conditions, "Synced");
  const paused = pausedConditions(settings.problem, pausedWork(object, drift), synced);
  return { type: "pause", conditions: [...paused, ...driftUnknownNews(object, drift)] };
}

/** What is not done while an object is paused, in words. */
function pausedWork({ metadata, status }: ObjectFacts, { edited, missing, polled }: DriftFacts): string[] {
  if (metadata.deletionTimestamp) return ["The object is to be deleted"];
  if (status.stack === undefined) return ["Nothing has been made yet"];
  const synced = findCondition(status.conditions, "Synced");
  return [
    ...(synced?.observedGeneration === metadata.generation ? [] : ["The spec has changed"]),
    ...edited.map((id) => `${describeId(id)} is not as it was applied`),
    ...missing.map((id) => `${describeId(id)} is missing`),
    ...(polled === undefined ? [] : [polled]),
  ];
}

/** What the last poll says about drift being unknown, unless the status says the same. */
export function driftUnknownNews({ status }: ObjectFacts, { unknown }: DriftFacts): NewCondition[] {
  return newsAmong(unknown === undefined ? [] : [unknown], status.conditions);
}

/** A decision with the gate of the object's mode. An update that is tried again as its plan waits has the cause of that plan. */
export function gated(facts: Facts, action: Action): Action {
  const { mode } = facts.settings;
  const gate: Gate = mode === "Propose" ? "all" : mode === "ProposeDestructive" ? "destructive" : "none";
  if (action.type === "destroy") return { ...action, gate };
  if (action.type !== "update") return action;
  const cause = action.cause === "Retrying" && isPlanned(facts) ? plannedCause(facts) : action.cause;
  // All plans of a new program are made at once, to be approved as a group: they wait for no rollout.
  return { ...action, gate, cause, onlyProgram: action.onlyProgram && gate !== "all" };
}

/** Whether nothing has failed, and the last update of the object as it is now specified became a plan. */
function isPlanned({ object: { metadata, status } }: Pick<Facts, "object">): boolean {
  const synced = findCondition(status.conditions, "Synced");
  const isCurrent = status.stack !== undefined && synced?.observedGeneration === metadata.generation;
  return isCurrent && synced.reason === WAITS_FOR_APPROVAL;
}

/** Why a plan was made: all causes but that something has failed before. */
type PlanCause = Exclude<Cause, "Retrying" | "Finishing">;

/** The reasons of plans. */
const REASONS: Readonly<Record<PlanCause, string>> = {
  Creating: "Created",
  Updating: "SpecChanged",
  ProgramChanged: "ProgramChanged",
  Requested: "Requested",
  Refreshing: "Drifted",
  Repairing: "Drifted",
};

type CauseFacts = Pick<Facts, "object" | "stack" | "drift" | "last">;

/** The reason of a plan that an update would make. One that is tried again has the reason that it had at first. */
export function reasonOf(facts: CauseFacts, cause: Cause): string {
  if (facts.object.status.stack === undefined) return REASONS.Creating;
  return REASONS[cause === "Retrying" || cause === "Finishing" ? plannedCause(facts) : cause];
}

/** Why the plan of an object was made. Its reason tells; where it is lost, what differs does. */
function plannedCause({ object, stack, drift, last: { planReason } }: CauseFacts): PlanCause {
  const hasDrifted = drift.ids.length > 0;
  if (planReason === "Drifted") return hasDrifted ? "Repairing" : "Refreshing";
  const causes = Object.keys(REASONS) as PlanCause[];
  const known = causes.find((cause) => REASONS[cause] === planReason);
  if (known !== undefined) return known;
  if (hasDrifted) return "Repairing";
  return object.status.stack?.program === stack.program ? "Updating" : "ProgramChanged";
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
