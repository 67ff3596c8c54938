import { describe, expect, it } from "vitest";
import { failureIn, hasHealth, healthOf } from "../../../providers/kubernetes/kstatus";
import type { LiveObject, ObjectMeta } from "../../../providers/kubernetes/types";

function object(type: string, status?: object, spec: object = {}, metadata: Partial<ObjectMeta> = {}): LiveObject {
  const split = type.lastIndexOf("/");
  return {
    apiVersion: type.slice(0, split),
    kind: type.slice(split + 1),
    metadata: { name: "a", uid: "u", resourceVersion: "1", generation: 2, ...metadata },
    spec,
    ...(status && { status }),
  };
}

const condition = (type: string, status: string, reason = "Why", message = "") => ({ type, status, reason, message });
const CRD = "apiextensions.k8s.io/v1/CustomResourceDefinition";
const THING = "example.com/v1/Thing";
const waiting = (reason: string, message?: string) => ({
  phase: "Pending",
  containerStatuses: [{ name: "main", state: { waiting: { reason, message } } }],
});

/* The rules themselves are compared with kstatus in kstatus.integration.test.ts. */
describe("what is said of an object that does not work", () => {
  const late = condition("Progressing", "False", "ProgressDeadlineExceeded", "it took too long");
  const unscheduled = condition("PodScheduled", "False", "Unschedulable", "0/3 nodes are available");
  const away = condition("Ready", "False", "Away", "the server is away");
  const rolling = { replicas: 2, updatedReplicas: 2, availableReplicas: 0 };
  const balanced = { type: "LoadBalancer", clusterIP: "10.0.0.1" };
  const going = { deletionTimestamp: "2026-01-01T00:00:00Z" };
  const full = { phase: "Pending", conditions: [unscheduled] };
  const noImage = waiting("ImagePullBackOff", "no such image");
  it.each([
    ["a Deployment that rolls", object("apps/v1/Deployment", rolling, { replicas: 2 }), "0 of 2 are available"],
    [
      "a Pod whose image cannot be pulled",
      object("v1/Pod", noImage),
      "its container main: ImagePullBackOff: no such image",
    ],
    ["a Pod that begins", object("v1/Pod", waiting("ContainerCreating")), "it has not started"],
    ["a Pod that fits on no node", object("v1/Pod", full), unscheduled.message],
    [
      "a Service without an address",
      object("v1/Service", { loadBalancer: {} }, balanced),
      "it has no address of a load balancer",
    ],
    ["a custom resource that is not Ready", object(THING, { conditions: [away] }), "the server is away"],
    ["what is behind", object(THING, { observedGeneration: 1 }), "its controller has not seen the last change"],
  ])("%s is in progress", (_, live, message) => {
    expect(healthOf(live)).toEqual({ status: "InProgress", message });
  });

  it.each([
    ["a Deployment that came to nothing", object("apps/v1/Deployment", { conditions: [late] }), "Failed", late.message],
    ["a Pod that failed", object("v1/Pod", { phase: "Failed" }), "Failed", "its containers have failed"],
    ["an object that goes", object("v1/Namespace", {}, {}, going), "Terminating", "it is being deleted"],
  ])("%s is not", (_, live, status, message) => {
    expect(healthOf(live)).toEqual({ status, message });
  });

  const withAddress = { loadBalancer: { ingress: [{ ip: "1.2.3.4" }] } };
  it.each<[string, LiveObject]>([
    ["a claim that waits for its first consumer", object("v1/PersistentVolumeClaim", { phase: "Pending" })],
    ["a custom resource without conditions", object(THING)],
    ["a custom resource whose conditions are no list", object(THING, { conditions: { Ready: "True" } })],
    ["a Service in the cluster", object("v1/Service", {}, { type: "ClusterIP" })],
    ["a ConfigMap", object("v1/ConfigMap")],
    ["a Service with an address", object("v1/Service", withAddress, { type: "LoadBalancer" })],
  ])("nothing of %s", (_, live) => {
    expect(healthOf(live)).toEqual({ status: "Current", message: "" });
  });
});

describe("a condition that tells of a failure", () => {
  const done = { replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1, fullyLabeledReplicas: 1 };
  const rolled = [condition("Progressing", "True", "NewReplicaSetAvailable"), condition("Available", "True")];
  const loadBalancer = { ingress: [{ ip: "192.0.2.1" }] };
  const balancer = { type: "LoadBalancer" };
  /** By type, each condition for failure that its API documents, with its status and reason, beside a status that works. */
  it.each<[type: string, status: object, spec: object, failing: string, is: string, reason: string, health: string]>([
    ["apps/v1/Deployment", done, {}, "ReplicaFailure", "True", "FailedCreate", "InProgress"],
    ["apps/v1/Deployment", done, {}, "Progressing", "False", "ProgressDeadlineExceeded", "Failed"],
    ["apps/v1/ReplicaSet", done, {}, "ReplicaFailure", "True", "FailedCreate", "InProgress"],
    ["v1/Pod", { phase: "Pending" }, {}, "PodScheduled", "False", "Unschedulable", "InProgress"],
    ["v1/Pod", { phase: "Running" }, {}, "Ready", "False", "ReadinessGatesNotReady", "InProgress"],
    ["v1/Pod", { phase: "Failed" }, {}, "DisruptionTarget", "True", "PreemptionByScheduler", "Failed"],
    ["v1/Pod", { phase: "Succeeded" }, {}, "PodResizePending", "True", "Infeasible", "InProgress"],
    ["v1/Pod", { phase: "Succeeded" }, {}, "PodResizeInProgress", "True", "Error", "InProgress"],
    ["batch/v1/Job", { startTime: "2026-01-01T00:00:00Z" }, {}, "Failed", "True", "BackoffLimitExceeded", "Failed"],
    ["batch/v1/Job", { startTime: "2026-01-01T00:00:00Z" }, {}, "FailureTarget", "True", "PodFailurePolicy", "Failed"],
    ["v1/Service", { loadBalancer }, balancer, "LoadBalancerPortsError", "True", "MixedProtocol", "InProgress"],
    ["v1/PersistentVolumeClaim", { phase: "Bound" }, {}, "ControllerResizeError", "True", "", "InProgress"],
    ["v1/PersistentVolumeClaim", { phase: "Bound" }, {}, "NodeResizeError", "True", "", "InProgress"],
    ["v1/PersistentVolumeClaim", { phase: "Bound" }, {}, "ModifyVolumeError", "True", "", "InProgress"],
    ["policy/v1/PodDisruptionBudget", {}, {}, "DisruptionAllowed", "False", "SyncFailed", "InProgress"],
    [CRD, {}, {}, "NamesAccepted", "False", "PluralConflict", "Failed"],
    [CRD, {}, {}, "Established", "False", "NotAccepted", "Failed"],
    [CRD, {}, {}, "NonStructuralSchema", "True", "Violations", "InProgress"],
    [CRD, {}, {}, "KubernetesAPIApprovalPolicyConformant", "False", "InvalidAnnotation", "InProgress"],
    [THING, {}, {}, "Stalled", "True", "Any", "Failed"],
    [THING, {}, {}, "Ready", "False", "Any", "InProgress"],
  ])("of %s %j %j: %s=%s %s", (type, status, spec, failing, is, reason, health) => {
    const told = condition(failing, is, reason, "the words of the controller");
    const others = [...rolled, condition("Established", "True")].filter(({ type }) => type !== failing);
    expect(healthOf(object(type, { ...status, conditions: [...others, told] }, spec))).toEqual({
      status: health,
      message: expect.stringContaining("the words of the controller"),
    });
  });

  it("is told beside the reason for which nothing more is tried", () => {
    const late = condition("Progressing", "False", "ProgressDeadlineExceeded", "it took too long");
    const refused = condition("ReplicaFailure", "True", "FailedCreate", "failed quota: q");
    const live = object("apps/v1/Deployment", { conditions: [late, refused] });
    expect(healthOf(live)).toEqual({ status: "Failed", message: "it took too long: failed quota: q" });
    expect(failureIn(live)).toBe("it took too long: failed quota: q");
  });

  it("is none of the change that its controller has not seen, nor of what only waits", () => {
    const refused = condition("ReplicaFailure", "True", "FailedCreate", "failed quota: q");
    expect(failureIn(object("apps/v1/Deployment", { observedGeneration: 1, conditions: [refused] }))).toBeUndefined();
    expect(failureIn(object("apps/v1/Deployment", { replicas: 0 }))).toBeUndefined();
  });

  it("of a container that runs before the others is told", () => {
    const initContainerStatuses = waiting("CrashLoopBackOff", "back-off 5m0s").containerStatuses;
    expect(healthOf(object("v1/Pod", { phase: "Pending", initContainerStatuses })).message).toBe(
      "its container main: CrashLoopBackOff: back-off 5m0s",
    );
  });
});

it("types that are right as soon as they are applied are told from those that begin to work later", () => {
  const has = (type: string) => hasHealth(object(type));
  expect(["apps/v1/Deployment", "v1/Pod", "example.com/v1/Thing"].filter(has)).toHaveLength(3);
  expect(["v1/Namespace", "v1/Secret", "rbac.authorization.k8s.io/v1/RoleBinding"].filter(has)).toEqual([]);
});
