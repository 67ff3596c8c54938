import { isDeepStrictEqual } from "node:util";
import type { LiveObject } from "../../providers/kubernetes/client";
import { obeyedAnnotations } from "../../stacks/contract/annotations";
import { type AnyKind, kindName, statusOf } from "../../stacks/contract/kind";
import { FINALIZER, objectKey } from "../../stacks/contract/object";
import type { ObjectChange } from "../cache/change";

/** One object, as the queue holds it. */
export interface ObjectItem {
  readonly id: string;
  readonly kind: AnyKind;
  /** See {@link objectKey}. */
  readonly key: string;
  /** Empty for what has none. */
  readonly namespace: string;
}

export function objectItem(kind: AnyKind, metadata: { namespace?: string; name?: string }): ObjectItem {
  const key = objectKey(metadata);
  return { id: `${kindName(kind)}|${key}`, kind, key, namespace: metadata.namespace ?? "" };
}

/**
 * When an object is reconciled after a change: now, if the change calls for an update; soon, together with other changes, if
 * status, labels or annotations differ; never, for a write of this process.
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
    isRestored(change) ||
    before.deletionTimestamp !== after.deletionTimestamp ||
    (hasFinalizer(previous) && !hasFinalizer(object)) ||
    !isDeepStrictEqual(obeyedAnnotations(previous), obeyedAnnotations(object))
  ) {
    return "now";
  }
  const isForeignStatus = !isDeepStrictEqual(previous.status, object.status) && !hasOwnStatus(object);
  // Kinds may depend on labels and annotations, though these make no new generation.
  const isOther = !isDeepStrictEqual([before.labels, before.annotations], [after.labels, after.annotations]);
  return isForeignStatus || isOther ? "soon" : "never";
}

/**
 * Whether an object went back to an earlier time: each change of the spec makes a higher generation. Another spec at the same
 * generation proves that only after a restore: new defaults of a CRD have the same effect.
 */
export function isRestored(change: ObjectChange): boolean {
  if (change.type !== "modified") return false;
  const { previous, object, restored } = change;
  const [before = 0, after = 0] = [previous.metadata.generation, object.metadata.generation];
  return after < before || (restored === true && after === before && !isDeepStrictEqual(previous.spec, object.spec));
}

/**
 * Whether an object was deleted in spite of its finalizer. The API server looks for finalizers only when a deletion begins.
 * One that is added while admission webhooks still look at the deletion is deleted with its object.
 */
export function isDeletedInSpiteOfFinalizer(change: ObjectChange): boolean {
  const wasReported = change.type === "deleted" && change.reported === true;
  return wasReported && change.object.metadata.deletionTimestamp === undefined && hasFinalizer(change.object);
}

/** Whether an object with a stack was deleted without the finalizer, which another client may have removed. */
export function isDeletedWithItsStack(change: ObjectChange): boolean {
  const wasReported = change.type === "deleted" && change.reported === true;
  return wasReported && !hasFinalizer(change.object) && statusOf(change.object).stack !== undefined;
}

function hasFinalizer({ metadata }: LiveObject): boolean {
  return metadata.finalizers?.includes(FINALIZER) ?? false;
}
