import type { LiveObject } from "../../providers/kubernetes/client";
import { groupOf } from "../../providers/kubernetes/object-types";
import { wasApplied } from "../../providers/kubernetes/ownership";
import { objectId, parseObjectId } from "../../stacks/contract/object";
import type { PlannedChange } from "../automation/planned-changes";
import { touchedObject } from "./effects";

/**
 * Those of an owner's live objects that Kindstack applied and that are not among what it is to have, by
 * {@link objectId}. Who copies an object with its labels has not had it applied by Kindstack.
 */
export function findUntracked(owned: readonly LiveObject[], kept: ReadonlySet<string>): LiveObject[] {
  const known = new Set([...kept].map(idInGroup));
  return owned.filter(
    (object) =>
      object.metadata.deletionTimestamp === undefined && !known.has(idInGroup(objectId(object))) && wasApplied(object),
  );
}

/** An object is the same in all versions of its group. */
function idInGroup(id: string): string {
  const { apiVersion, ...rest } = parseObjectId(id);
  return JSON.stringify({ group: groupOf(apiVersion), ...rest });
}

/** What a plan does to a stack. */
export type PlanOperation = "update" | "delete" | "release";

/**
 * What an update that was cut off has made and no state has; its removal is part of a plan, unless that releases all.
 *
 * @param others what is deleted with the object though others made it
 */
export function untrackedBeside(
  owned: readonly LiveObject[],
  changes: readonly PlannedChange[],
  operation: PlanOperation,
  others: readonly LiveObject[] = [],
): LiveObject[] {
  if (operation === "release") return [];
  const touched = new Set(changes.map(touchedObject).filter((id) => id !== undefined));
  const untracked = [...findUntracked(owned, touched), ...others.filter((object) => !touched.has(objectId(object)))];
  return [...new Map(untracked.map((object) => [object.metadata.uid, object])).values()];
}

/** Whether there is anything to be planned. */
export function changesAnything(changes: readonly PlannedChange[], untracked: readonly LiveObject[]): boolean {
  return untracked.length > 0 || changes.some(({ operation }) => operation !== "same");
}
