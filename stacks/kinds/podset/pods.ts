import type { V1PodStatus } from "@kubernetes/client-node";
import type { LiveObject } from "../../../providers/kubernetes/index";
import { type KindObject, objectId } from "../../contract/index";
import type { PodSetSpec, PodSetStatus } from "./schema";

function statusOf(pod: LiveObject): V1PodStatus {
  return pod.status ?? {};
}

/** Whether a Pod counts as one of the replicas: pending or running, and not on its way out. */
export function isCounted(pod: LiveObject): boolean {
  const { phase = "Pending" } = statusOf(pod);
  return !pod.metadata.deletionTimestamp && (phase === "Pending" || phase === "Running");
}

export function isReady(pod: LiveObject): boolean {
  return statusOf(pod).conditions?.some(({ type, status }) => type === "Ready" && status === "True") ?? false;
}

/**
 * The Pods to keep when only `replicas` of these may stay: what is not ready goes first, then what is youngest.
 *
 * Pods that no stack has recorded yet (a crash came between the Pod and the checkpoint) are kept before all others, for
 * only what is recorded can be deleted again; the next reconcile will see one too many.
 */
export function podsToKeep(
  pods: readonly LiveObject[],
  replicas: number,
  isRecorded: (pod: LiveObject) => boolean,
): LiveObject[] {
  const counted = pods.filter(isCounted);
  const unrecorded = counted.filter((pod) => !isRecorded(pod));
  const recorded = counted
    .filter(isRecorded)
    .sort((a, b) => Number(isReady(b)) - Number(isReady(a)) || (ageAndName(a) < ageAndName(b) ? -1 : 1));
  return [...unrecorded, ...recorded.slice(0, Math.max(0, replicas - unrecorded.length))];
}

/** In order, the oldest first. */
function ageAndName({ metadata }: LiveObject): string {
  return `${metadata.creationTimestamp} ${metadata.name}`;
}

export function podSetReport({ metadata }: KindObject<PodSetSpec>, owned: readonly LiveObject[]): PodSetStatus {
  const counted = owned.filter(isCounted);
  return {
    podNames: counted.map((pod) => pod.metadata.name).sort(),
    replicas: counted.length,
    readyReplicas: counted.filter(isReady).length,
    selector: `app=${metadata.name},version=v0.1`,
  };
}

/** Pods that completed by themselves, whether well or badly. */
export function completedPods(owned: readonly LiveObject[]): string[] {
  return owned.filter((pod) => !isCounted(pod) && !pod.metadata.deletionTimestamp).map(objectId);
}

/** Pods that completed, and one too many or too few of those that count. */
export function podSetNeedsReconcile({ spec }: KindObject<PodSetSpec>, owned: readonly LiveObject[]): string[] {
  const completed = completedPods(owned);
  const counted = owned.filter(isCounted).length;
  return counted === spec.replicas ? completed : [...completed, `${counted} Pods instead of ${spec.replicas}`];
}
