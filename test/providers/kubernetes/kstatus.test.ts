import { describe, expect, it } from "vitest";
import { hasHealth, healthOf } from "../../../providers/kubernetes/kstatus";
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
const waiting = (reason: string, message?: string) => ({
  phase: "Pending",
  containerStatuses: [{ name: "main", state: { waiting: { reason, message } } }],
});

/* The rules themselves are compared with kstatus in kstatus.integration.test.ts. */
describe("what is said of an object that does not work", () => {
  it.each<[string, LiveObject, string, string]>([
    [
      "a Deployment that rolls",
      object("apps/v1/Deployment", { replicas: 2, updatedReplicas: 2, availableReplicas: 0 }, { replicas: 2 }),
      "InProgress",
      "0 of 2 are available",
    ],
    [
      "a Deployment that came to nothing",
      object("apps/v1/Deployment", {
        conditions: [condition("Progressing", "False", "ProgressDeadlineExceeded", "it took too long")],
      }),
      "Failed",
      "it took too long",
    ],
    [
      "a Pod whose image cannot be pulled",
      object("v1/Pod", waiting("ImagePullBackOff", "no such image")),
      "InProgress",
      "its container main: ImagePullBackOff: no such image",
    ],
    ["a Pod that begins", object("v1/Pod", waiting("ContainerCreating")), "InProgress", "it has not started"],
    [
      "a Pod that fits on no node",
      object("v1/Pod", {
        phase: "Pending",
        conditions: [condition("PodScheduled", "False", "Unschedulable", "0/3 nodes are available")],
      }),
      "InProgress",
      "0/3 nodes are available",
    ],
    ["a Pod that failed", object("v1/Pod", { phase: "Failed" }), "Failed", "its containers have failed"],
    [
      "a Service without its load balancer",
      object("v1/Service", { loadBalancer: {} }, { type: "LoadBalancer", clusterIP: "10.0.0.1" }),
      "InProgress",
      "it has no address of a load balancer",
    ],
    [
      "a custom resource that is not Ready",
      object("example.com/v1/Thing", { conditions: [condition("Ready", "False", "Away", "the server is away")] }),
      "InProgress",
      "the server is away",
    ],
    [
      "an object whose controller is behind",
      object("example.com/v1/Thing", { observedGeneration: 1 }),
      "InProgress",
      "its controller has not seen the last change",
    ],
    [
      "an object that goes",
      object("v1/Namespace", { phase: "Terminating" }, {}, { deletionTimestamp: "2026-01-01T00:00:00Z" }),
      "Terminating",
      "it is being deleted",
    ],
  ])("%s", (_, live, status, message) => {
    expect(healthOf(live)).toEqual({ status, message });
  });

  it.each<[string, LiveObject]>([
    ["a claim that waits for its first consumer", object("v1/PersistentVolumeClaim", { phase: "Pending" })],
    ["a custom resource without conditions", object("example.com/v1/Thing")],
    [
      "a custom resource whose conditions are no list",
      object("example.com/v1/Thing", { conditions: { Ready: "True" } }),
    ],
    ["a Service in the cluster", object("v1/Service", {}, { type: "ClusterIP" })],
    ["a ConfigMap", object("v1/ConfigMap")],
    [
      "a Service with an address",
      object("v1/Service", { loadBalancer: { ingress: [{ ip: "1.2.3.4" }] } }, { type: "LoadBalancer" }),
    ],
  ])("nothing of %s", (_, live) => {
    expect(healthOf(live)).toEqual({ status: "Current", message: "" });
  });
});

it("types that are right as soon as they are applied are told from those that begin to work later", () => {
  const has = (type: string) => hasHealth(object(type));
  expect(["apps/v1/Deployment", "v1/Pod", "example.com/v1/Thing"].filter(has)).toHaveLength(3);
  expect(["v1/Namespace", "v1/Secret", "rbac.authorization.k8s.io/v1/RoleBinding"].filter(has)).toEqual([]);
});
