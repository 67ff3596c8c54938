import type { LiveObject } from "../../providers/kubernetes/client";
import { type KindObject, objectId } from "../contract/object";
import { isCounted, isReady } from "./pods";
import type { PodSetSpec, PodSetStatus } from "./schema";

export function podSetReport({ metadata }: KindObject<PodSetSpec>, owned: readonly LiveObject[]): PodSetStatus {
  const counted = owned.filter(isCounted);
  return {
    podNames: counted.map((pod) => pod.metadata.name).sort(),
    replicas: counted.length,
    readyReplicas: counted.filter(isReady).length,
    selector: `app=${metadata.name},version=v0.1`,
  };
}

/** Pods that ended by themselves, whether well or badly. */
export function podSetEnded(owned: readonly LiveObject[]): string[] {
  return owned.filter((pod) => !isCounted(pod) && !pod.metadata.deletionTimestamp).map(objectId);
}

/** Pods that ended, and one too many or too few of those that count. */
export function podSetShortfall({ spec }: KindObject<PodSetSpec>, owned: readonly LiveObject[]): string[] {
  const ended = podSetEnded(owned);
  const counted = owned.filter(isCounted).length;
  return counted === spec.replicas ? ended : [...ended, `${counted} Pods instead of ${spec.replicas}`];
}
