import type { LiveObject } from "../../providers/kubernetes/client";
import { groupOf } from "../../providers/kubernetes/object-types";
import { wasApplied } from "../../providers/kubernetes/ownership";
import type { AnyKind } from "../../stacks/contract/kind";
import { objectId, parseObjectId } from "../../stacks/contract/object";
import { watchedFor } from "../../stacks/contract/watched";
import type { PlannedChange } from "../automation/planned-changes";
import { touchedObject } from "./effects";

/**
 * Those of an owner's live objects that Kindstack applied and that are not among what it is to have, by
 * {@link objectId}. Who copies an object with its labels has not had it applied by Kindstack.
 *
 * @param owned may have an object more than once, as it was read last at its last place
 */
export function findUntracked(owned: readonly LiveObject[], kept: ReadonlySet<string>): LiveObject[] {
  const known = new Set([...kept].map(idInGroup));
  const isUntracked = (object: LiveObject) =>
    object.metadata.deletionTimestamp === undefined && !known.has(idInGroup(objectId(object))) && wasApplied(object);
  return distinct(owned.filter(isUntracked));
}

/** Each object once, by its UID: the last one of it. */
function distinct(objects: readonly LiveObject[]): LiveObject[] {
  return [...new Map(objects.map((object) => [object.metadata.uid, object])).values()];
}

/** An object is the same in all versions of its group. */
function idInGroup(id: string): string {
  const { apiVersion, ...rest } = parseObjectId(id);
  return JSON.stringify({ group: groupOf(apiVersion), ...rest });
}

/**
 * What an update that was cut off has made and no state has; its removal is part of a plan.
 *
 * @param others what is deleted with the object though others made it
 */
export function untrackedBeside(
  owned: readonly LiveObject[],
  changes: readonly PlannedChange[],
  others: readonly LiveObject[],
): LiveObject[] {
  const touched = new Set(changes.map(touchedObject).filter((id) => id !== undefined));
  return distinct([...findUntracked(owned, touched), ...others.filter((object) => !touched.has(objectId(object)))]);
}

/** What a kind watches that is deleted with its objects though others made it. */
const othersOf = ({ capabilities: { watches = [] } }: AnyKind) =>
  watches.filter(({ deletedWithObject }) => deletedWithObject);

export function deletesOthers(kind: AnyKind): boolean {
  return othersOf(kind).length > 0;
}

/** Of the objects that others made, those that are deleted with the one of this key, and are not yet. */
export async function deletedWith(kind: AnyKind, key: string, objects: readonly LiveObject[]): Promise<LiveObject[]> {
  const remaining = objects.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  return watchedFor(othersOf(kind), key, remaining);
}
