import type { LiveObject } from "../../../../providers/kubernetes/client";
import type { KindObject } from "../../../../stacks/contract/object";
import type { PodSetSpec } from "../../../../stacks/kinds/podset/schema";

/** A PodSet with so many replicas. */
export function podSetObject(replicas: number, name = "web"): KindObject<PodSetSpec> & LiveObject {
  return {
    apiVersion: "batch.tutorial.kubebuilder.io/v1",
    kind: "PodSet",
    metadata: { name, namespace: "default", uid: "uid-web", resourceVersion: "10", generation: 1 },
    spec: { replicas },
  };
}

export interface PodState {
  phase?: "Pending" | "Running" | "Succeeded" | "Failed" | "Unknown";
  ready?: boolean;
  /** In minutes. */
  age?: number;
  deleted?: boolean;
}

/** A Pod that runs and is ready, where a test does not say otherwise. */
export function pod(name: string, { phase = "Running", ready = true, age = 0, deleted = false }: PodState = {}) {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name,
      namespace: "default",
      uid: `uid-of-${name}`,
      resourceVersion: "100",
      creationTimestamp: new Date(Date.UTC(2026, 0, 1, 0, 60 - age)).toISOString(),
      ...(deleted && { deletionTimestamp: "2026-01-02T00:00:00Z" }),
    },
    status: { phase, conditions: [{ type: "Ready", status: ready ? "True" : "False" }] },
  } satisfies LiveObject;
}
