import type { LiveObject, Manifest } from "../../providers/kubernetes/client";
import { eventually } from "../../src/testing/eventually";
import { type Condition, findCondition } from "../../stacks/contract/condition";
import { statusOf } from "../../stacks/contract/kind";
import { apply, find, get, type Reference, remove, requestUpdate } from "./objects";

/* What objects say of themselves, and waiting for it. */

/** A condition of an object. @throws when it has none of this type */
export function conditionOf(object: LiveObject, type: string): Condition {
  const condition = findCondition(statusOf(object).conditions, type);
  if (condition === undefined) throw new Error(`there is no condition ${type}: ${JSON.stringify(object.status)}`);
  return condition;
}

/** The types of an object's conditions. */
export function conditionTypes(object: LiveObject): string[] {
  return (statusOf(object).conditions ?? []).map(({ type }) => type);
}

/** Waits until a condition has this status for the present generation. */
export function untilCondition(
  reference: Reference,
  type: string,
  status: Condition["status"],
  reason?: string,
): Promise<LiveObject> {
  return eventually(async () => {
    const object = await get(reference);
    const condition = findCondition(statusOf(object).conditions, type);
    const current = condition?.observedGeneration === object.metadata.generation;
    if (!current || condition?.status !== status || (reason !== undefined && condition.reason !== reason)) {
      throw new Error(`${type} is not ${status} ${reason ?? ""}: ${JSON.stringify(object.status)}`);
    }
    return object;
  });
}

/** Waits until an object is Ready as it is now specified. */
export function untilReady(reference: Reference): Promise<LiveObject> {
  return untilCondition(reference, "Ready", "True");
}

/** Waits until an object's stack is as the object is now specified, whether or not what it made works. */
export function untilSynced(reference: Reference): Promise<LiveObject> {
  return untilCondition(reference, "Synced", "True");
}

/** Applies a manifest, and waits until its object is Ready. */
export async function applyUntilReady(manifest: Manifest): Promise<LiveObject> {
  await apply(manifest);
  return untilReady(manifest);
}

/** Makes an object, and waits until it is ready. @returns the name of its stack */
export async function stackOf(manifest: Manifest): Promise<string> {
  return statusOf(await applyUntilReady(manifest)).stack?.name ?? "";
}

/** Waits until an object is gone. */
export async function untilGone(reference: Reference): Promise<void> {
  await eventually(async () => {
    const object = await find(reference);
    if (object !== undefined) throw new Error(`it is still there: ${JSON.stringify(object)}`);
  });
}

/** Deletes an object, and waits until it is gone. */
export async function removeUntilGone(reference: Reference): Promise<void> {
  await remove(reference);
  await untilGone(reference);
}

/** Asks the operator for another update, and waits until that is done. @param value another one than before */
export async function updateAgain(reference: Reference, value: string): Promise<void> {
  await requestUpdate(reference, value);
  await eventually(async () => {
    if (statusOf(await untilReady(reference)).lastHandledReconcile !== value)
      throw new Error("it was not updated again");
  });
}
