import { errorMessageOf } from "../../providers/errors";
import type { ApiError, LiveObject } from "../../providers/kubernetes/client";
import { hasHealth, healthOf } from "../../providers/kubernetes/kstatus";
import { CodeEndedError } from "../../stacks/contract/code-ended";
import { type Condition, findCondition, type NewCondition } from "../../stacks/contract/condition";
import type { AnyKind } from "../../stacks/contract/kind";
import { type KindObject, objectId, objectKey, parseObjectId, type StackRecord } from "../../stacks/contract/object";
import { isUnapplied, PROGRESSING } from "./conditions";
import { describeAll, describeId } from "./describe";

/** The reason of `Ready` and of `Stalled` when it will not, unless someone changes something. */
const FAILED = "ResourceFailed";
const READY_AS_APPLIED = "what was applied last is ready";
const READY = "all resources are up to date and ready";

/** What of a stack's resources does not work. */
export interface Unready {
  waiting: string[];
  failed: string[];
  /** Why nothing can be told of one, because its type is not served. */
  unserved?: string | undefined;
}

/** What the caches show of what an object owns. */
export interface OwnedObjects {
  objects: readonly LiveObject[];
  /** Whether the caches show Kindstack's last apply of the object with this id, or a later change. */
  isSeen(id: string): boolean;
  /** See {@link KindCache.unserved}. */
  unserved(id: string): ApiError | undefined;
}

/**
 * What does not work of what a stack made: by the kind's own rule, or by the rules of kstatus for each object.
 *
 * @param parsed `undefined` for an object that cannot be parsed
 * @throws CodeEndedError
 */
export async function findUnready(
  kind: AnyKind,
  parsed: KindObject | undefined,
  stack: StackRecord | undefined,
  { objects, isSeen, unserved }: OwnedObjects,
): Promise<Unready> {
  for (const { id } of stack?.resources ?? []) {
    const error = unserved(id);
    if (error !== undefined) return { waiting: [], failed: [], unserved: `${describeId(id)}: ${error.message}` };
  }
  const { readyWhen } = kind.capabilities;
  if (readyWhen !== undefined && parsed !== undefined) {
    try {
      return { waiting: await readyWhen(parsed, objects), failed: [] };
    } catch (error) {
      if (error instanceof CodeEndedError) throw error;
      return { waiting: [], failed: [`readyWhen of ${kind.kind} fails: ${errorMessageOf(error)}`] };
    }
  }
  const unready: Unready = { waiting: [], failed: [] };
  const owned = new Map(objects.map((object) => [objectId(object), object]));
  for (const { id } of stack?.resources ?? []) {
    const object = isSeen(id) ? owned.get(id) : undefined;
    if (object === undefined) {
      const { apiVersion, kind, ...metadata } = parseObjectId(id);
      if (hasHealth({ apiVersion, kind, metadata }))
        unready.waiting.push(`${describeId(id)}: it has just been applied`);
      continue;
    }
    const { status, message } = healthOf(object);
    if (status === "Current") continue;
    const text = `${object.kind} ${objectKey(object.metadata)}: ${message}`;
    unready[status === "Failed" ? "failed" : "waiting"].push(text);
  }
  return unready;
}

/**
 * `Ready`: synced, and all resources work. Otherwise `Reconciling` or `Stalled` name the resource that does not work, unless
 * these conditions tell of the stack itself.
 *
 * @param conditions all other conditions, without the results of an earlier call
 */
export function readyConditions(
  conditions: Condition[],
  { waiting, failed, unserved }: Unready,
  stack?: StackRecord,
): NewCondition[] {
  const synced = findCondition(conditions, "Synced");
  if (synced === undefined) return [];
  const { lastTransitionTime: _, ...said } = synced;
  const ready = { ...said, type: "Ready" };
  // What was applied last runs, and works or not, whatever an update would change.
  const runsAsApplied = isUnapplied(synced) && stack !== undefined;
  if (synced.status !== "True" && !runsAsApplied) return [ready];
  if (unserved !== undefined) {
    return [{ ...ready, status: "Unknown", reason: "UnknownKind", message: unserved }];
  }
  if (waiting.length + failed.length === 0) {
    return [
      runsAsApplied
        ? { ...ready, status: "True", reason: "Succeeded", message: READY_AS_APPLIED }
        : { ...ready, message: READY },
    ];
  }
  const isFailed = failed.length > 0;
  const reason = isFailed ? FAILED : PROGRESSING;
  const message = describeAll(isFailed ? failed : waiting);
  const notReady: NewCondition = { ...ready, status: "False", reason, message };
  const type = isFailed ? "Stalled" : "Reconciling";
  if (findCondition(conditions, type) !== undefined) return [notReady];
  return [notReady, { ...notReady, type, status: "True" }];
}

/** Whether a condition is what {@link readyConditions} made of an earlier state. */
export function isOfReadiness({ type, reason }: Condition): boolean {
  return (type === "Reconciling" && reason === PROGRESSING) || (type === "Stalled" && reason === FAILED);
}
