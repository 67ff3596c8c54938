import type { LiveObject } from "../../providers/kubernetes/client";
import { obeyedAnnotations } from "./annotations";
import { type Condition, findCondition } from "./condition";
import { statusOf } from "./kind";

/** What an object's status says in short; metrics, `kindstack status` and the console count by it. */
interface Readiness {
  /** Whether the stack is as the object says. */
  synced: Condition["status"];
  /** Whether what it made works as well. */
  ready: Condition["status"];
  /** The reason of `Ready`; `Pending` while the object has no such condition. */
  reason: string;
  /** What else holds, in this order. */
  states: ReadinessState[];
}

export const READINESS_STATES = [
  "Reconciling",
  "Stalled",
  "FieldConflict",
  "DriftUnknown",
  "Paused",
  "Deleting",
] as const;
export type ReadinessState = (typeof READINESS_STATES)[number];

/** Whether an object is Ready as it is now specified. */
export function isReady(object: LiveObject): boolean {
  const ready = findCondition(statusOf(object).conditions, "Ready");
  return ready?.status === "True" && isCurrent(object, ready);
}

/** Whether a condition says only that its object is paused. */
export function isPaused({ reason }: Pick<Condition, "reason">): boolean {
  return reason === "Paused" || reason === "InvalidAnnotation";
}

/** Whether an object's stack is as its last update left it, but for what others did since, which may end at any time. */
export function isSettled(object: LiveObject): boolean {
  const synced = findCondition(statusOf(object).conditions, "Synced");
  if (synced === undefined || !isCurrent(object, synced)) return false;
  return synced.status === "True" || synced.reason === "FieldConflict" || isPaused(synced);
}

function isCurrent({ metadata }: LiveObject, { observedGeneration }: Condition): boolean {
  return observedGeneration === metadata.generation;
}

export function readinessOf(object: LiveObject): Readiness {
  const { conditions } = statusOf(object);
  const { status = "Unknown", reason = "Pending" } = findCondition(conditions, "Ready") ?? {};
  const synced = findCondition(conditions, "Synced")?.status ?? "Unknown";
  const holds = (type: string) => findCondition(conditions, type)?.status === "True";
  const { deletionTimestamp } = object.metadata;
  const states = READINESS_STATES.filter((state) => {
    if (state === "Paused") return obeyedAnnotations(object).paused;
    if (state === "Deleting") return deletionTimestamp !== undefined;
    return holds(state);
  });
  return { synced, ready: status, reason, states };
}
