import { isDeepStrictEqual } from "node:util";
import type { LiveObject } from "../../providers/kubernetes/client";
import { obeyedAnnotations } from "../../stacks/contract/annotations";
import { FINALIZER } from "../../stacks/contract/object";
import type { ObjectChange } from "../cache/informer";

/**
 * When an object is reconciled after a change of it: now, if an update may follow; soon, together with other changes, if
 * only its status may; never, for what this process has written itself.
 *
 * @param hasOwnStatus whether an object has the status that this process wrote last
 */
export function reconcilesAfter(
  change: ObjectChange,
  hasOwnStatus: (object: LiveObject) => boolean,
): "now" | "soon" | "never" {
  if (change.type !== "modified") return "now";
  const { previous, object } = change;
  const [before, after] = [previous.metadata, object.metadata];
  if (
    before.generation !== after.generation ||
    before.deletionTimestamp !== after.deletionTimestamp ||
    (isFinalized(previous) && !isFinalized(object)) ||
    !isDeepStrictEqual(obeyedAnnotations(previous), obeyedAnnotations(object))
  ) {
    return "now";
  }
  const isForeignStatus = !isDeepStrictEqual(previous.status, object.status) && !hasOwnStatus(object);
  return isForeignStatus || changesMetadata(before, after) ? "soon" : "never";
}

/**
 * Whether an object was deleted in spite of its finalizer. The API server looks for finalizers only when a deletion begins.
 * One that is added while admission webhooks still look at the deletion is deleted with its object.
 */
export function isDeletedInSpiteOfFinalizer(change: ObjectChange): boolean {
  const wasReported = change.type === "deleted" && change.reported === true;
  return wasReported && change.object.metadata.deletionTimestamp === undefined && isFinalized(change.object);
}

function isFinalized({ metadata }: LiveObject): boolean {
  return metadata.finalizers?.includes(FINALIZER) ?? false;
}

/** Whether labels or annotations change, on which kinds may depend though they make no new generation. */
function changesMetadata(before: LiveObject["metadata"], after: LiveObject["metadata"]): boolean {
  return !isDeepStrictEqual([before.labels, before.annotations], [after.labels, after.annotations]);
}
