import type { LiveObject } from "../../providers/kubernetes/client";
import { isObjectOutputs, removeStray } from "../../providers/kubernetes/object";
import { wasApplied } from "../../providers/kubernetes/ownership";
import { ownerDescription, statusOf } from "../../stacks/contract/kind";
import { objectId } from "../../stacks/contract/object";
import type { StackResource } from "../automation/event-log";
import { isUnfinished } from "./conditions";
import type { Turn } from "./context";
import type { Attempt } from "./decide";
import { FINALIZER } from "./finalizer";

/*
 * What an update that was cut off has made may be in no state. The next update of the same object as it was makes it again
 * and so takes it over; when the object has changed meanwhile, or goes, nothing but its owner's mark leads to it.
 */

/** Whether there may be strays of an object: an update of it was begun of which nobody saw a good end. */
export function mayHaveStrays(object: LiveObject, lastAttempt: Attempt | undefined): boolean {
  const { uid, generation, finalizers = [] } = object.metadata;
  if (lastAttempt?.uid === uid) return lastAttempt.outcome !== "succeeded";
  if (!finalizers.includes(FINALIZER)) return false;
  const { conditions, observedGeneration, stack } = statusOf(object);
  return stack === undefined || isUnfinished(conditions) || observedGeneration !== generation;
}

/**
 * Those of an owner's live objects that Kindstack applied and that are not among what it is to have, by
 * {@link objectId}. Who copies an object with its labels has not had it applied by Kindstack.
 */
export function findStrays(owned: readonly LiveObject[], kept: ReadonlySet<string>): LiveObject[] {
  return owned.filter(
    (object) => object.metadata.deletionTimestamp === undefined && !kept.has(objectId(object)) && wasApplied(object),
  );
}

/** @param kept the resources that the object is to have */
export async function removeStrays(
  { context, key, object }: Turn,
  kept: readonly StackResource[],
  options: { release: boolean },
): Promise<void> {
  const { kind, owned } = context;
  const { uid } = object.metadata;
  const ids = kept.flatMap(({ outputs }) => (isObjectOutputs(outputs) ? [objectId(outputs.manifest)] : []));
  for (const stray of findStrays(owned(uid), new Set(ids))) await removeStray(stray, options);
  const outputs = kept.map(({ outputs }) => outputs);
  await kind.removeStrays?.({ uid, description: ownerDescription(kind, key) }, outputs, options);
}
