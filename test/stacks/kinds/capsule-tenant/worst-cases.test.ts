import { RE2JS } from "re2js";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { LiveObject, Manifest } from "../../../../providers/kubernetes/client";
import type { AdmissionRequest, AdmissionView } from "../../../../stacks/contract/admission";
import { objectAdmission } from "../../../../stacks/contract/object-admission";
import { capsuleTenantAdmission } from "../../../../stacks/kinds/capsule-tenant/admission/admission";
import { indexKeysOf } from "../../../../stacks/kinds/capsule-tenant/admission/endpoints";
import { LateCollisions } from "../../../../stacks/kinds/capsule-tenant/admission/late-collisions";
import { capsuleTenant } from "../../../../stacks/kinds/capsule-tenant/kind";
import type { CapsuleTenantSpec } from "../../../../stacks/kinds/capsule-tenant/schema";
import { lookupOf } from "../../../providers/kubernetes/lookup-of";
import { admissionView, creation } from "./admission-view";
import { labelled, oilTenant, quotaIn } from "./objects";

/** Look-ups and comparisons that take less than 50 ms by far; the worst before took hundreds of millions. */
const MAX_OPERATIONS = 250_000;

afterEach(() => void vi.restoreAllMocks());

/** How often something is looked up or compared while `work` runs. */
async function operationsOf(work: () => unknown): Promise<number> {
  let count = 0;
  const counted = <T extends object, K extends keyof T>(owner: T, method: K, cost: (self: unknown) => number) => {
    const original = owner[method] as (...given: unknown[]) => unknown;
    owner[method] = function (this: unknown, ...given: unknown[]) {
      count += cost(this);
      return original.apply(this, given);
    } as T[K];
    return () => {
      owner[method] = original as T[K];
    };
  };
  const one = () => 1;
  const each = (self: unknown) => (self as unknown[]).length;
  const matcher = Object.getPrototypeOf(RE2JS.compile("a").matcher("a"));
  const restore = [
    counted(Map.prototype, "get", one),
    counted(Map.prototype, "set", one),
    counted(Map.prototype, "has", one),
    counted(Set.prototype, "has", one),
    counted(Array.prototype, "includes", each),
    counted(Array.prototype, "find", each),
    counted(Array.prototype, "filter", each),
    counted(matcher, "find", () => 10),
  ];
  try {
    await work();
  } finally {
    for (const undo of restore) undo();
  }
  return count;
}

const range = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));

const ingress = (name: string, namespace: string, spec: object): LiveObject => ({
  apiVersion: "networking.k8s.io/v1",
  kind: "Ingress",
  metadata: { name, namespace, uid: name, resourceVersion: "1" },
  spec,
});
const newIngress = (...rules: object[]) => ingress("new", "oil-0", { rules });
const rule = (host: string | undefined, ...paths: string[]) => ({
  ...(host && { host }),
  http: { paths: paths.map((path) => ({ path })) },
});
const deepHost = (index: number) => `${"a.".repeat(100)}h${index}.example.com`;

const hard = Object.fromEntries(range(64, (i) => [`requests.example.com/r${i}`, 1_000]));
const spec: Partial<CapsuleTenantSpec> = {
  hostnameCollisionScope: "Tenant",
  resourceQuotas: [{ hard }],
  servicesMetadata: { additionalLabels: Object.fromEntries(range(64, (i) => [`l${i}`, "v"])) },
  namespacesMetadata: { forbiddenLabels: { denied: range(100, (i) => `key-${i}`), deniedRegex: "(a|b)*c" } },
};
const tenants = [oilTenant(spec), { ...oilTenant(spec), metadata: { ...oilTenant().metadata, name: "gas" } }];
const namespaces = [...range(200, (i) => labelled(`oil-${i}`)), labelled("gas-0", "gas")];

/** A cluster in which every list is long. */
const view: { -readonly [K in keyof AdmissionView]: AdmissionView[K] } = admissionView(
  {
    tenants,
    namespaces,
    ingresses: [
      ...range(100, (i) => ingress(`gas-${i}`, "gas-0", { rules: [rule("x.org", ...range(1_000, (p) => `/p${p}`))] })),
      ...range(50, (i) => ingress(`oil-${i}`, `oil-${i}`, { rules: range(20, (h) => rule(deepHost(h), `/${i}`)) })),
    ],
    quotas: namespaces.map(({ metadata: { name, labels } }) =>
      quotaIn(name, hard, { hard, used: hard }, { labels: { ...labels, "capsule.clastix.io/resource-quota": "0" } }),
    ),
  },
  {
    get: async () => lookupOf(oilTenant() as LiveObject),
    json: async () => ({ status: { allowed: true } }) as never,
    mergePatch: async () => ({}) as never,
  },
);

const pod = (containers: object[]): Manifest => ({ apiVersion: "v1", kind: "Pod", metadata: {}, spec: { containers } });
const requests = (index: number) => ({ resources: { requests: { [`example.com/r${index}`]: "1" } } });
const namespace = (metadata: object): Manifest => ({ apiVersion: "v1", kind: "Namespace", metadata });

/** A Tenant on its way out, and what its watch shows next. */
const ending = {
  ...oilTenant(),
  metadata: {
    ...oilTenant().metadata,
    deletionTimestamp: "2026-01-01T00:00:00Z",
    finalizers: range(40_000, (i) => `a.b/${i}`),
  },
};
view.follow = async () =>
  (async function* () {
    yield ending;
  })();

const labels = (count: number, prefix = "l") => Object.fromEntries(range(count, (i) => [`${prefix}${i}`, ""]));
const paths = (count: number, host?: string) => newIngress(rule(host, ...range(count, (i) => `/p${i}`)));
const allowing = (host: (index: number) => string) => oilTenant({ ingressHostnames: { allowed: range(100, host) } });
const ownedBy = (owner: (index: number) => object) => namespace({ ownerReferences: range(20_000, owner) });
const amounts = (requests: object) => pod([{ resources: { requests } }]);
const RESOURCE = "example.com/r0";

/** For each webhook, objects of about 1.5 MiB, which is what the API server stores, each made to cost the most. */
const worstCases: Record<string, [string, Manifest | Partial<AdmissionRequest>][]> = {
  "ingresses.capsule.clastix.io": [
    ["paths of one host", paths(40_000, "x.org")],
    ["the same path", newIngress(rule("x.org", ...range(40_000, () => "/a")))],
    ["hosts", newIngress(...range(5_000, (i) => rule(deepHost(i), "/a")))],
    ["as many as are compared", newIngress(...range(1_000, (i) => rule(deepHost(i), "/a")))],
    ["paths for all hosts", paths(1_000)],
    ["what another tenant has", paths(1_000, "x.org")],
    ["two versions", { operation: "UPDATE", object: paths(40_000, "x.org"), oldObject: paths(40_000, "y.org") }],
    ["slashes", newIngress(rule("x.org", "/".repeat(1_500_000)))],
    ["codes", newIngress(rule("x.org", "/%2E".repeat(400_000)))],
  ],
  "hostnames.capsule.clastix.io": [
    ["host names", { object: allowing(deepHost), oldObject: allowing((i) => `x${i}.org`) }],
  ],
  "namespaces.capsule.clastix.io": [
    ["labels", namespace({ labels: labels(40_000) })],
    ["as many as are compared", namespace({ labels: labels(200) })],
    ["a long key", namespace({ annotations: { ["ab".repeat(750_000)]: "" } })],
    ["owners", ownedBy((i) => ({ apiVersion: "v1", kind: "Node", name: "n", uid: `${i}` }))],
    ["groups", { user: { username: "alice", groups: range(20_000, (i) => `g${i}`) }, object: namespace({}) }],
  ],
  "restored.namespaces.capsule.clastix.io": [
    [
      "owners",
      ownedBy((i) => ({ apiVersion: "capsule.clastix.io/v1alpha1", kind: "Tenant", name: `t${i}`, uid: `${i}` })),
    ],
  ],
  "services.capsule.clastix.io": [["labels", { ...namespace({ labels: labels(40_000, "x") }), kind: "Service" }]],
  "quotas.capsule.clastix.io": [
    ["containers", pod(range(20_000, requests))],
    ["as many as are added up", pod(range(1_500, requests))],
    ["init containers", { ...pod([]), spec: { initContainers: range(1_500, requests) } }],
    ["amounts", amounts(Object.fromEntries(range(50_000, (i) => [`example.com/r${i}`, "1"])))],
    ["digits", amounts({ [RESOURCE]: "9".repeat(1_500_000) })],
    ["an exponent", amounts({ [RESOURCE]: "1e999999999" })],
    ["the last of a quota", pod([requests(0)])],
  ],
  "orphan.objects.kindstack.dev": [["finalizers", { operation: "DELETE", oldObject: ending }]],
  "objects.quotas.capsule.clastix.io": [
    ["an object", { resource: { group: "", name: "configmaps" }, object: namespace({ name: "a" }) }],
  ],
};

const webhooks = [...capsuleTenantAdmission().webhooks(), ...objectAdmission([capsuleTenant]).webhooks()];

it("each webhook has its worst cases", () => {
  expect(Object.keys(worstCases).sort()).toEqual(webhooks.map(({ name }) => name).sort());
});

describe.each(webhooks.map((webhook) => [webhook.name, webhook] as const))("the worst cases of %s", (name, webhook) => {
  it.each(worstCases[name] ?? [])("%s", async (_, given) => {
    const more = "kind" in given ? { object: given } : given;
    const request = { ...creation(pod([])), name: "oil-new", namespace: "oil-0", ...more };
    vi.useFakeTimers();
    try {
      const count = await operationsOf(async () => {
        const decision = webhook.review(request, view);
        await vi.advanceTimersByTimeAsync(5_000);
        await decision;
      });
      expect(count).toBeGreaterThan(0);
      expect(count).toBeLessThan(MAX_OPERATIONS);
    } finally {
      vi.useRealTimers();
    }
  });
});

it.each<[string, object]>([
  ["paths that another tenant has", { rules: [rule("x.org", ...range(1_000, (i) => `/p${i}`))] }],
  ["hosts", { rules: range(1_000, (i) => rule(deepHost(i), "/a")) }],
  ["as many paths as there may be", { rules: [rule("x.org", ...range(40_000, (i) => `/${i}`))] }],
])("a look for Ingresses that came together %s", async (_, spec) => {
  const found = ingress("new", "oil-0", spec);
  const seen: AdmissionView = {
    ...view,
    get: (watch, key) => (watch === "ingresses" && key === "oil-0/new" ? found : view.get(watch, key)),
  };
  const count = await operationsOf(async () => {
    new LateCollisions().ingressChanged(found, seen);
    await new Promise((resolve) => setTimeout(resolve, 200));
  });
  expect(count).toBeGreaterThan(0);
  expect(count).toBeLessThan(MAX_OPERATIONS);
});

it("an index has a bounded number of entries for an Ingress", () => {
  const hosts = newIngress(...range(5_000, (i) => rule(deepHost(i), "/a")));
  expect(indexKeysOf(hosts).length).toBeLessThanOrEqual(10_000);
});
