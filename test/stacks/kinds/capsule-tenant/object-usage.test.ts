import { describe, expect, it } from "vitest";
import type { Manifest } from "../../../../providers/kubernetes/client";
import { formatQuantity } from "../../../../providers/kubernetes/quantity";
import type { AdmissionRequest } from "../../../../stacks/contract/admission";
import { growthOf, isInScope, usageOf } from "../../../../stacks/kinds/capsule-tenant/object-usage";

const of = (kind: string, spec: object, annotations: Record<string, string> = {}): Manifest => ({
  apiVersion: "v1",
  kind,
  metadata: { name: "a", annotations },
  spec,
});
const core = (name: string) => ({ group: "", name });
const texts = (usage: ReadonlyMap<string, bigint>) =>
  Object.fromEntries([...usage].map(([resource, amount]) => [resource, formatQuantity(amount)]));
const counted = (resource: string, object: Manifest) => texts(usageOf(core(resource), object));

describe("what an object counts in quotas", () => {
  it("is its number, by its plain name in the core group", () => {
    expect(counted("secrets", of("Secret", {}))).toEqual({ "count/secrets": "1", secrets: "1" });
    expect(texts(usageOf({ group: "apps", name: "deployments" }, of("Deployment", {})))).toEqual({
      "count/deployments.apps": "1",
    });
  });

  it("of a Pod is what its containers request, or its init containers if that is more, and its overhead", () => {
    const container = (cpu: string, more: object = {}) => ({
      resources: { requests: { cpu }, limits: { cpu } },
      ...more,
    });
    const pod = of("Pod", {
      containers: [
        container("1"),
        { resources: { requests: { memory: "1Gi", "example.com/gpu": 2 }, limits: { "example.com/gpu": 2 } } },
      ],
      initContainers: [container("500m", { restartPolicy: "Always" }), container("2"), container("100m")],
      overhead: { cpu: "10m", memory: "1Gi" },
    });
    expect(counted("pods", pod)).toEqual({
      "count/pods": "1",
      pods: "1",
      cpu: "2510m",
      "requests.cpu": "2510m",
      "limits.cpu": "2510m",
      memory: "2147483648",
      "requests.memory": "2147483648",
      "requests.example.com/gpu": "2",
    });
  });

  it("of a Pod with resources of its own is those", () => {
    const pod = of("Pod", {
      containers: [{ resources: { requests: { cpu: "1" } } }],
      resources: { requests: { cpu: "3" }, limits: { cpu: "4" } },
    });
    expect(counted("pods", pod)).toMatchObject({ "requests.cpu": "3", "limits.cpu": "4" });
  });

  it("of a claim is its storage, in all and of its class", () => {
    const spec = { storageClassName: "fast", resources: { requests: { storage: "5G" } } };
    const result = {
      "count/persistentvolumeclaims": "1",
      persistentvolumeclaims: "1",
      "requests.storage": "5G",
      "fast.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
      "fast.storageclass.storage.k8s.io/requests.storage": "5G",
    };
    expect(counted("persistentvolumeclaims", of("PersistentVolumeClaim", spec))).toEqual(result);
    const { storageClassName: _, ...rest } = spec;
    const annotated = of("PersistentVolumeClaim", rest, { "volume.beta.kubernetes.io/storage-class": "fast" });
    expect(counted("persistentvolumeclaims", annotated)).toEqual(result);
  });

  it.each([
    ["ClusterIP", {}, {}],
    ["NodePort", {}, { "services.nodeports": "2" }],
    ["LoadBalancer", {}, { "services.nodeports": "2", "services.loadbalancers": "1" }],
    [
      "LoadBalancer",
      { allocateLoadBalancerNodePorts: false },
      { "services.nodeports": "1", "services.loadbalancers": "1" },
    ],
  ])("of a Service of type %s with %j is %j", (type, more, result) => {
    const service = of("Service", { type, ports: [{ port: 1 }, { port: 2, nodePort: 30_000 }], ...more });
    expect(counted("services", service)).toEqual({ "count/services": "1", services: "1", ...result });
  });
});

describe("what a request adds", () => {
  const service = (type: string) => of("Service", { type, ports: [{ port: 1 }] });
  const request = (object: Manifest, oldObject?: Manifest) =>
    ({ resource: core("services"), object, ...(oldObject && { oldObject }) }) as AdmissionRequest;

  it("is all of a new object, and of a changed one what became more", () => {
    expect(texts(growthOf(request(service("NodePort"))))).toMatchObject({ services: "1", "services.nodeports": "1" });
    expect(texts(growthOf(request(service("NodePort"), service("ClusterIP"))))).toEqual({ "services.nodeports": "1" });
    expect(texts(growthOf(request(service("ClusterIP"), service("NodePort"))))).toEqual({});
  });
});

describe("the scopes of a quota", () => {
  const best = { containers: [{}] };
  const burstable = { containers: [{ resources: { requests: { cpu: "1" } } }], activeDeadlineSeconds: 5 };
  it.each([
    [["BestEffort"], best, true],
    [["BestEffort"], burstable, false],
    [["NotBestEffort", "Terminating"], burstable, true],
    [["NotTerminating"], burstable, false],
    [["NotTerminating"], best, true],
    [["PriorityClass"], best, false],
    [["PriorityClass"], { ...best, priorityClassName: "high" }, true],
  ] as const)("%j contain a Pod with %j: %s", (scopes, spec, result) => {
    expect(isInScope({ scopes: [...scopes] }, "pods", of("Pod", spec))).toBe(result);
  });

  it.each([
    ["In", true],
    ["NotIn", false],
    ["Exists", true],
    ["DoesNotExist", false],
  ] as const)("select Pods by priority class, %s", (operator, result) => {
    const matchExpressions = [{ scopeName: "PriorityClass" as const, operator, values: ["high"] }];
    const pod = of("Pod", { ...best, priorityClassName: "high" });
    expect(isInScope({ scopeSelector: { matchExpressions } }, "pods", pod)).toBe(result);
  });

  it("contain nothing but Pods", () => {
    expect(isInScope({ scopes: ["NotBestEffort"] }, "services", of("Service", {}))).toBe(false);
    expect(isInScope({}, "services", of("Service", {}))).toBe(true);
  });
});
