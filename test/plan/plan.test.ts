import { describe, expect, it } from "vitest";
import { ApiError, type LiveObject } from "../../providers/kubernetes/client";
import { OBJECT_STUB } from "../../providers/kubernetes/object";
import type { PreviewResult, StackPreviewOptions } from "../../src/automation/engine";
import type { PlannedChange } from "../../src/automation/planned-changes";
import type { View } from "../../src/plan/plan";
import { changesAnything, type PlanRequest, planDestroy, planUpdate, refuseUnknown } from "../../src/plan/plan";
import { podSet } from "../../stacks/kinds/podset/kind";
import { applied, marksOf } from "../objects";

const OWNER = { uid: "uid-web", description: "PodSet.batch.tutorial.kubebuilder.io/default/web" };

function pod(name: string): LiveObject {
  const metadata = { ...marksOf(OWNER, { created: true }), name, namespace: "default", uid: `uid-${name}` };
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { ...metadata, managedFields: [applied("kindstack", {})] },
  } as LiveObject;
}

const { apiVersion, kind, metadata } = pod("web-1");
const manifest = { apiVersion, kind, metadata: { name: metadata.name, namespace: "default" } };
const KEPT: PlannedChange = {
  ...({ urn: "u", type: "pulumi-nodejs:dynamic/kubernetes:Pod", name: "web-1", operation: "same" } as const),
  inputs: { __provider: OBJECT_STUB, manifest, owner: OWNER },
};

/** An engine that previews this, in a world with these objects of the owner. */
function request(preview: Partial<PreviewResult>, world: Partial<View> = {}) {
  const asked: [string, StackPreviewOptions | undefined][] = [];
  const never = () => Promise.reject(new Error("not to be asked for"));
  const view: View = {
    look: async () => ({ outcome: "absent" }),
    ...{ cluster: never, owned: never, watched: never, marked: never, deletedWith: never },
    ...world,
  };
  const result = { exists: true, changes: [KEPT], failures: [], ...preview };
  const engine: PlanRequest["engine"] = {
    preview: async (_stack, _program, options) => {
      asked.push(["update", options]);
      return result;
    },
    previewDestroy: async (_stack, options) => {
      asked.push(["destroy", options]);
      return result;
    },
  };
  const object = { metadata: { name: "web", namespace: "default", uid: OWNER.uid } };
  return { asked, of: { kind: podSet, object, view, engine, signal: undefined, program: () => {}, refresh: false } };
}

const untrackedIn = (plan: { untracked: readonly LiveObject[] }) =>
  plan.untracked.map((object) => object.metadata.name);
const cut = pod("web-9");
const others = { ...pod("of-others"), metadata: { name: "of-others", uid: "o" } } as LiveObject;
const WORLD = { marked: async () => [pod("web-1"), cut], deletedWith: async () => [others] };

describe("a plan that an operation is bound to", () => {
  it("compares with what is alive, and tells of what an update that was cut off has made", async () => {
    const { asked, of } = request({}, WORLD);
    const plan = await planUpdate({ ...of, binds: true });
    expect(asked).toMatchObject([["update", { refresh: true, plans: true }]]);
    expect(untrackedIn(plan)).toEqual(["web-9"]);
    expect(changesAnything(plan)).toBe(true);
  });

  it("of a deletion trusts the state, and tells also of what is deleted with the object though others made it", async () => {
    const { asked, of } = request({}, WORLD);
    const plan = await planDestroy({ ...of, refresh: true, release: false, binds: true });
    expect(asked).toMatchObject([["destroy", { refresh: false, plans: true }]]);
    expect(untrackedIn(plan)).toEqual(["web-9", "of-others"]);
  });

  it("of a release removes nothing beside the stack", async () => {
    const plan = await planDestroy({ ...request({}).of, release: true, binds: true });
    expect([plan.operation, plan.untracked]).toEqual(["release", []]);
  });
});

it("a plan that only reports asks for nothing but what the changes touch", async () => {
  const { asked, of } = request({});
  const plan = await planUpdate({ ...of, binds: false });
  expect(asked).toMatchObject([["update", { refresh: false, plans: false }]]);
  expect([plan.untracked, plan.resources, changesAnything(plan)]).toEqual([[], [], false]);
});

describe("the plan of a deletion, of what was found and not made", () => {
  const { inputs = {}, ...kept } = KEPT;
  const old = { inputs, outputs: { ...inputs, fields: "f:spec", existing: true } };
  const change: PlannedChange = { ...kept, operation: "delete", old };

  it.each([OWNER.uid, undefined])("is its release, where the object has the UID %s", async (uid) => {
    const { of } = request({ changes: [change] });
    const object = { metadata: { name: "web", namespace: "default", ...(uid !== undefined && { uid }) } };
    const plan = await planDestroy({ ...of, object, release: false, binds: false });
    expect(plan.resources.map(({ shown }) => shown.operation)).toEqual(["release"]);
  });
});

describe("what could not be looked up", () => {
  const forbidden = new ApiError(403, "Forbidden", "pods is forbidden");
  const view = { look: async () => ({ outcome: "unknown", error: forbidden }) as const };

  it("is unchecked in a report, and the very error of those who decide nothing on an unknown", async () => {
    const { of } = request({ changes: [{ ...KEPT, operation: "create" }] }, view);
    const plan = await planUpdate({ ...of, binds: false });
    expect(plan.resources[0]?.shown).toMatchObject({
      operation: "unchecked",
      notChecked: expect.stringContaining("pods is forbidden"),
    });
    expect(() => refuseUnknown(plan)).toThrow(forbidden);
  });

  it("does not hide why the preview itself failed", async () => {
    const failure = { errorClass: "terminal", reason: "StateMissing", message: "the stack is not there" } as const;
    const { of } = request({ changes: [{ ...KEPT, operation: "create" }], failures: [failure] }, view);
    expect((await planUpdate({ ...of, binds: true })).failures).toEqual([failure]);
  });
});
