import type { ObjectInputs, ObjectOutputs } from "./object-inputs";
import { differsForGood, grantsRights } from "./object-types";
import { ownerUidOf } from "./ownership";
import type { LiveObject } from "./types";

/** What was applied before, as the state knows it. */
export type Applied = Pick<ObjectOutputs, "manifest" | "uid">;

/** What an apply does with what has the object's name: `wait`, until that is gone, which is being deleted already. */
export type ApplyEffect = "create" | "adopt" | "update" | "replace" | "wait";

/** What an apply for these owners does, which previews show too, if the object is not refused to them. */
export function effectOf(
  live: LiveObject | undefined,
  inputs: ObjectInputs,
  owners: readonly string[],
  former: Applied | undefined,
): ApplyEffect {
  if (live === undefined) return "create";
  if (isDisplaced(live, inputs)) return "replace";
  if (live.metadata.deletionTimestamp !== undefined) return "wait";
  if (mustBeReplaced(live, inputs, ownersAllowed(live, owners, former), former)) return "replace";
  return ownerUidOf(live) === undefined ? "adopt" : "update";
}

/** Whether something unmanaged has a reserved name. */
export function isDisplaced(live: LiveObject, { adopt }: ObjectInputs): boolean {
  return adopt === "replace" && ownerUidOf(live) === undefined;
}

/** Whose a live object may be: what was applied before and grants rights is the owners', whatever its label says. */
export function ownersAllowed(live: LiveObject, owners: readonly string[], former: Applied | undefined): string[] {
  const isKnown = grantsRights(live) && live.metadata.uid === former?.uid;
  return isKnown ? [...owners, ownerUidOf(live) ?? ""] : [...owners];
}

/**
 * Whether a live object of the owner's differs in a field that cannot be changed. A RoleBinding that was deleted and made again by
 * hand is replaced whatever the program says, also without its owner's label: what it grants is the owner's to say.
 */
function mustBeReplaced(
  live: LiveObject,
  { manifest, replaceOnChanges = [] }: ObjectInputs,
  owners: readonly string[],
  former: Applied | undefined,
): boolean {
  const holder = ownerUidOf(live);
  const isOwners = holder === undefined ? grantsRights(live) : owners.includes(holder);
  const wasSwapped = grantsRights(live) && (former === undefined || differsForGood(live, former.manifest));
  return isOwners && differsForGood(live, manifest, wasSwapped ? ["*"] : replaceOnChanges);
}

/** Whether an object's label, or that of its owner, still says that it is the owner's. */
export function isGiven(
  live: LiveObject,
  { manifest, owner, givenBy }: Pick<ObjectInputs, "manifest" | "owner" | "givenBy">,
): boolean {
  if (ownerUidOf(live) === owner.uid) return true;
  return givenBy !== undefined && live.metadata.labels?.[givenBy] === manifest.metadata.labels?.[givenBy];
}
