import type { ResourceRule } from "./policy";

/** Pods, and the one way to add containers to those that run. */
export const PODS: readonly ResourceRule[] = [{ apiGroups: [""], resources: ["pods", "pods/ephemeralcontainers"] }];

/** In CEL: all containers of a Pod, of whatever kind. */
export function containersOf(object: string): string {
  const lists = ["containers", "initContainers", "ephemeralContainers"];
  return `(${lists.map((list) => `${object}.spec.?${list}.orValue([])`).join(" + ")})`;
}

/** In CEL: the image volumes of a Pod. */
export function imageVolumesOf(object: string): string {
  return `${object}.spec.?volumes.orValue([]).filter(volume, has(volume.image)).map(volume, volume.image)`;
}
