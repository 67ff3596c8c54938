import { createSecretKey } from "node:crypto";
import { describe, expect, it } from "vitest";
import { ApiError, type LiveObject, type Manifest } from "../../providers/kubernetes/client";
import { OWNER_UID_LABEL } from "../../providers/kubernetes/ownership";
import { withObserved } from "../../providers/observation";
import type { BindingPlan, PlannedChange } from "../../src/automation/planned-changes";
import type { DestroyAction, Gate, UpdateAction } from "../../src/controller/action";
import type { KindContext, Reconcile } from "../../src/controller/context";
import { passGate } from "../../src/controller/gate";
import type { ObjectState } from "../../src/controller/object-state";
import type { Plans } from "../../src/controller/plan-store";
import { planDigests } from "../../src/plan/digest";
import type { PlannedResource } from "../../src/plan/effects";
import type { StackPlan } from "../../src/plan/plan";
import type { Plan, PlanSpec } from "../../stacks/contract/plan";
import { memcached } from "../../stacks/kinds/memcached/kind";
import { liveObject, memcachedObject } from "../objects";
import { stub } from "../stub";
import { facts } from "./facts";
import { planSpec } from "./plans";

const object = memcachedObject();
const key = createSecretKey(Buffer.alloc(32));

function resource(operation: "create" | "update" | "replace" | "delete", urn: string = operation): PlannedResource {
  const change: PlannedChange = { urn, type: "t", name: urn, operation };
  return { change, shown: { name: urn, type: "t", operation, fields: [] } };
}

function planOf(resources: PlannedResource[], of: Partial<StackPlan> = {}): StackPlan {
  const changes = resources.map(({ change }) => change);
  const bound = { plan: {} as BindingPlan, observed: new Map() };
  return { exists: true, failures: [], operation: "update", untracked: [], ...bound, changes, resources, ...of };
}

/** The plan that is being applied, or another one. */
interface Begun {
  spec: { digest: string; steps: { digest: string }[]; object?: Partial<PlanSpec["object"]> };
  state?: Plan["status"]["state"];
}

/** An object whose plans people have decided on so. */
function pass(
  gate: Gate,
  plan: StackPlan | undefined,
  decide: (digest: string) => "Approve" | "Reject" | undefined = () => undefined,
  begun?: Begun,
) {
  const plans: Plans = {
    authorMayNotApprove: false,
    digests: async (basis) => planDigests(key, basis),
    decisionOn: (_kind, _object, digest) => {
      const decision = decide(digest);
      return decision && { decision, approver: "alice", at: "now", digest, expiresAt: 0 };
    },
    get: () => {
      if (begun === undefined) return undefined;
      const { digest, steps, object: other } = begun.spec;
      const { metadata, ...type } = object;
      const of = { ...metadata, ...type, generation: 1, ...other };
      const spec = planSpec(of, { digest, steps: steps as PlanSpec["steps"] });
      return stub<Plan>({ spec, status: { state: begun.state ?? "Applying" } });
    },
    write: async () => {},
    remove: async () => {},
  };
  const context = stub<KindContext>({ kind: memcached, plans, programDigest: "p" });
  const state = stub<ObjectState>({});
  const reconcile = stub<Reconcile>({ context, object, facts: facts({ mode: "Propose" }), state });
  const type = plan?.operation === "update" ? "update" : "destroy";
  const action = { type, gate, cause: "Updating" } as UpdateAction | DestroyAction;
  const never = () => Promise.reject(new Error("nothing is to be planned"));
  return passGate(reconcile, action, plan === undefined ? never : async () => plan);
}

const BOUND = { plan: {}, observed: new Map() };
const cut = { kind: "Pod", apiVersion: "v1", metadata: { name: "web-9", uid: "uid-9" } } as LiveObject;

it.each([
  ["nothing, where nothing changes", "all", planOf([]), "pass"],
  ["all that changes", "all", planOf([resource("create")]), "proposed"],
  ["no creation, where only destructive changes do", "destructive", planOf([resource("create")]), "pass"],
  ["a deletion", "destructive", planOf([resource("delete")]), "proposed"],
  ["a replacement", "destructive", planOf([resource("replace")]), "proposed"],
  ["a deletion beside a creation", "destructive", planOf([resource("create"), resource("delete")]), "proposed"],
  ["the removal of what no state has", "destructive", planOf([], { untracked: [cut] }), "proposed"],
] as const)("what waits for an approval %s", async (_, gate, plan, type) => {
  expect(await pass(gate, plan)).toMatchObject({ type });
});

it("a plan that waits shows all that it would do, and names the object as it is", async () => {
  const plan = planOf([resource("update")], { untracked: [cut] });
  expect(await pass("all", plan)).toMatchObject({
    spec: { object: { kind: "Memcached", namespace: "default", name: "cache", uid: "uid-cache" } },
    decision: undefined,
    resources: [
      { operation: "update", name: "update" },
      { operation: "delete", type: "Pod", name: "web-9", fields: [] },
    ],
  });
});

describe("what passes", () => {
  it("is bound to its plan", async () => {
    const passed = await pass("destructive", planOf([resource("create")]));
    expect(passed).toMatchObject({ type: "pass", bound: { ...BOUND, untracked: [] } });
    expect(passed).not.toHaveProperty("approval");
    expect(await pass("all", planOf([], { operation: "delete" }))).toMatchObject({ bound: BOUND });
  });

  it.each(["update", "delete"] as const)("by an approval has its name: %s", async (operation) => {
    const plan = planOf([resource(operation)], { operation });
    const approval = { approver: "alice", at: "now", digest: expect.stringMatching(/^sha256:/) };
    expect(await pass("all", plan, () => "Approve")).toMatchObject({ bound: BOUND, approval });
  });
});

describe("what an approved operation that was cut off has left to do", () => {
  /** The plan that is being applied, and its approval. */
  const begin = (plan: StackPlan) => {
    const basis = { kind: memcached, object, programDigest: "p", references: [] };
    const { digest, steps } = planDigests(key, { ...plan, ...basis });
    const begun = { spec: { digest, steps: [...steps.values()].map((step) => ({ digest: step })) } };
    return { digest, begun, approves: (one: string) => (one === digest ? "Approve" : undefined) } as const;
  };
  const { digest, begun, approves } = begin(planOf([resource("create", "one"), resource("update", "two")]));
  const rest = planOf([resource("update", "two")]);

  it("needs no other approval", async () => {
    expect(await pass("all", rest, approves, begun)).toMatchObject({ approval: { digest } });
  });

  it("waits where it is more than was approved, also if that is a creation", async () => {
    const more = planOf([resource("update", "two"), resource("create", "three")]);
    expect(await pass("all", more, approves, begun)).toMatchObject({ type: "proposed" });
  });

  it("includes what it has created and not saved, unless others changed that since", async () => {
    const manifest: Manifest = { apiVersion: "v1", kind: "Pod", metadata: { name: "web-1" }, spec: { a: 1 } };
    const created = (spec: object, uid = object.metadata.uid): PlannedResource => {
      const metadata = { name: "web-1", uid: "w", labels: { [OWNER_UID_LABEL]: uid } };
      const live = liveObject({ ...manifest, metadata, spec });
      const owner = { uid: object.metadata.uid, description: "Memcached" };
      return { ...resource("create", "one"), live, inputs: { manifest, owner } };
    };
    const nothing = new Map([["one", withObserved(undefined, "one", "Create", null, {})]]);
    const { begun, approves } = begin(planOf([resource("create", "one")], { observed: nothing }));
    const observed = new Map([["one", withObserved(undefined, "one", "Create", manifest, {})]]);
    const rest = (...of: Parameters<typeof created>) => planOf([created(...of)], { observed });
    expect(await pass("all", rest({ a: 1 }), approves, begun)).toMatchObject({ type: "pass" });
    expect(await pass("all", rest({ a: 2 }), approves, begun)).toMatchObject({ type: "proposed" });
    expect(await pass("all", rest({ a: 1 }, "another's"), approves, begun)).toMatchObject({ type: "proposed" });
  });

  it.each<[string, Partial<Begun> & { of?: Partial<PlanSpec["object"]> }]>([
    ["only waits itself", { state: "Pending" }],
    ["is of a predecessor", { of: { uid: "uid-of-another" } }],
    ["is of another specification", { of: { generation: 7 } }],
  ])("waits where the plan %s", async (_, { of, ...changes }) => {
    const other = { ...begun, ...changes, spec: { ...begun.spec, ...(of && { object: of }) } };
    expect(await pass("all", rest, approves, other)).toMatchObject({ type: "proposed" });
  });

  it("includes the deletion of what is on its way out, and nothing else that becomes of it", async () => {
    const live = { ...cut, metadata: { ...cut.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } };
    const leaving = (operation: "update" | "delete") => planOf([{ ...resource(operation, "three"), live }]);
    expect(await pass("all", leaving("delete"), approves, begun)).toMatchObject({ approval: { digest } });
    expect(await pass("all", leaving("update"), approves, begun)).toMatchObject({ type: "proposed" });
    const there = planOf([{ ...resource("delete", "three"), live: cut }]);
    expect(await pass("all", there, approves, begun)).toMatchObject({ type: "proposed" });
  });

  it("waits where it was rejected since", async () => {
    const decide = (one: string) => (one === digest ? "Approve" : "Reject");
    const passed = await pass("all", rest, decide, begun);
    expect(passed).toMatchObject({ type: "proposed", decision: { decision: "Reject" } });
  });
});

describe("what is unknown", () => {
  it("is neither passed nor proposed: the reconcile is tried again", async () => {
    const lookupError = new ApiError(503, "ServiceUnavailable", "away");
    const plan = planOf([{ ...resource("update"), lookupError }]);
    await expect(pass("all", plan, () => "Approve")).rejects.toBe(lookupError);
    const failure = { errorClass: "terminal", reason: "Invalid", message: "no" } as const;
    expect(await pass("all", { ...plan, failures: [failure] })).toEqual({ type: "failed", failures: [failure] });
  });

  it("is an engine that does not bind itself, unless there is no stack to destroy", async () => {
    const { plan: _, observed: __, ...unbound } = planOf([resource("update")]);
    const half = { ...unbound, plan: {} as BindingPlan };
    for (const plan of [unbound, { ...unbound, exists: false }, { ...unbound, operation: "delete" as const }, half]) {
      await expect(pass("all", plan)).rejects.toThrow("does not hold updates");
    }
    const none: StackPlan = { ...unbound, resources: [], changes: [], operation: "delete", exists: false };
    expect(await pass("all", none)).toMatchObject({ type: "pass" });
  });
});
