import type { LiveObject } from "../../providers/kubernetes/client";
import { wasApplied } from "../../providers/kubernetes/ownership";
import { objectId } from "../../stacks/contract/object";
import type { PlannedChange } from "../automation/planned-changes";
import { touchedObject } from "./effects";

/**
 * Those of an owner's live objects that Kindstack applied and that are not among what it is to have, by
 * {@link objectId}. Who copies an object with its labels has not had it applied by Kindstack.
 */
export function findUntracked(owned: readonly LiveObject[], kept: ReadonlySet<string>): LiveObject[] {
  return owned.filter(
    (object) => object.metadata.deletionTimestamp === undefined && !kept.has(objectId(object)) && wasApplied(object),
  );
}

/** What a plan does to a stack. */
export type PlanOperation = "update" | "delete" | "release";

/** What an update that was cut off has made and no state has; its removal is part of a plan, unless that releases all. */
export function untrackedBeside(
  owned: readonly LiveObject[],
  changes: readonly PlannedChange[],
  operation: PlanOperation,
): LiveObject[] {
  if (operation === "release") return [];
  return findUntracked(owned, new Set(changes.map(touchedObject).filter((id) => id !== undefined)));
}

/** Whether there is anything to be planned. */
export function changesAnything(changes: readonly PlannedChange[], untracked: readonly LiveObject[]): boolean {
  return untracked.length > 0 || changes.some(({ operation }) => operation !== "same");
}
