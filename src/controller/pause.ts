import { findCondition, type NewCondition } from "../../stacks/contract/condition";
import { objectKey, parseObjectId } from "../../stacks/contract/object";
import type { Action } from "./action";
import { newsAmong, pausedConditions } from "./conditions";
import type { Facts } from "./facts";

/** While an object is paused, its status says what would be done. */
export function pause(facts: Facts): Action {
  const { metadata, status, annotationProblem } = facts;
  const synced = findCondition(status.conditions, "Synced");
  const paused = pausedConditions(metadata.generation, annotationProblem, pausedWork(facts), synced);
  return { type: "pause", conditions: [...paused, ...driftUnknownNews(facts)] };
}

/** What is not done while an object is paused, in words. */
function pausedWork({ metadata, status, drift, polledDrift }: Facts): string[] {
  if (metadata.deletionTimestamp) return ["The object is to be deleted"];
  if (status.stack === undefined) return ["Nothing has been made yet"];
  const synced = findCondition(status.conditions, "Synced");
  const nameOf = (id: string) => {
    const { kind, ...key } = parseObjectId(id);
    return `${kind} ${objectKey(key)}`;
  };
  return [
    ...(synced?.observedGeneration === metadata.generation ? [] : ["The spec has changed"]),
    ...drift.edited.map((id) => `${nameOf(id)} is not as it was applied`),
    ...drift.missing.map((id) => `${nameOf(id)} is missing`),
    ...(polledDrift === undefined ? [] : [polledDrift]),
  ];
}

/** What the last poll says about drift being unknown, unless the status says the same. */
export function driftUnknownNews({ driftUnknown, status }: Facts): NewCondition[] {
  return newsAmong(driftUnknown === undefined ? [] : [driftUnknown], status.conditions);
}
