import { findCondition, type NewCondition } from "../../stacks/contract/condition";
import { objectKey, parseObjectId } from "../../stacks/contract/object";
import type { Action } from "./action";
import { newsAmong, pausedConditions } from "./conditions";
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
  const nameOf = (id: string) => {
    const { kind, ...key } = parseObjectId(id);
    return `${kind} ${objectKey(key)}`;
  };
  return [
    ...(synced?.observedGeneration === metadata.generation ? [] : ["The spec has changed"]),
    ...edited.map((id) => `${nameOf(id)} is not as it was applied`),
    ...missing.map((id) => `${nameOf(id)} is missing`),
    ...(polled === undefined ? [] : [polled]),
  ];
}

/** What the last poll says about drift being unknown, unless the status says the same. */
export function driftUnknownNews({ status }: ObjectFacts, { unknown }: DriftFacts): NewCondition[] {
  return newsAmong(unknown === undefined ? [] : [unknown], status.conditions);
}
