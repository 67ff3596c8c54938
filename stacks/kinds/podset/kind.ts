import { defineKind } from "../../contract/index";
import { completedPods, podSetNeedsReconcile, podSetReport } from "./pods";
import { podSetProgram } from "./program";
import { podSetSpec, podSetStatus } from "./schema";

export const podSet = defineKind({
  group: "batch.tutorial.kubebuilder.io",
  version: "v1",
  kind: "PodSet",
  plural: "podsets",
  singular: "podset",
  scope: "Namespaced",
  description: "A number of equal Pods.",
  spec: podSetSpec,
  status: podSetStatus,
  columns: [
    { name: "Desired", type: "integer", jsonPath: ".spec.replicas" },
    { name: "ReadyReplicas", type: "integer", jsonPath: ".status.readyReplicas" },
  ],
  owns: [{ apiVersion: "v1", kind: "Pod" }],
  directory: __dirname,
  program: podSetProgram,
  report: podSetReport,
  capabilities: {
    rules: [
      { rule: "size(self.metadata.name) <= 63", message: "the name is a label of the Pods: at most 63 characters" },
    ],
    scale: {
      specReplicasPath: ".spec.replicas",
      statusReplicasPath: ".status.replicas",
      labelSelectorPath: ".status.selector",
    },
    // An owner reference that blocks its owner's deletion: clusters with OwnerReferencesPermissionEnforcement ask for it.
    permissions: [
      { apiGroups: ["batch.tutorial.kubebuilder.io"], resources: ["podsets/finalizers"], verbs: ["update"] },
    ],
    liveState: {
      reads: [{ apiVersion: "v1", kind: "Pod" }],
      needsReconcile: podSetNeedsReconcile,
      completed: completedPods,
    },
  },
});
