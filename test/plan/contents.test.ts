import { describe, expect, it } from "vitest";
import { describePlanned } from "../../src/controller/describe";
import { approvalWords, planContents } from "../../src/plan/contents";
import type { PlannedResource } from "../../src/plan/effects";
import type { ResourcePlan } from "../../src/plan/resource-plan";
import { MAX_STEP_FIELDS, MAX_STEPS, type Plan, STEP_ACTIONS } from "../../stacks/contract/plan";
import { memcached } from "../../stacks/kinds/memcached/kind";
import { namespace } from "../objects";

const NONE = { untracked: [], refusals: new Map<string, string>() };
const DIGESTS = { digest: "d", group: "g", steps: new Map(), creations: new Map() };

function resource(operation: ResourcePlan["operation"]): PlannedResource {
  const shown = {
    name: "web",
    type: "Deployment",
    operation,
    fields: [{ path: "spec.image", before: "theirs", after: "a" }],
  };
  return { change: { urn: "u", type: "t", name: "web", operation: "create" }, shown };
}

describe("plans and conditions, which others may read", () => {
  it("tell no value of what is adopted", () => {
    const { shown } = resource("adopt");
    expect(planContents({ resources: [resource("adopt")], ...NONE }, DIGESTS).steps[0]?.fields).toEqual([
      { path: "spec.image", to: '"a"' },
    ]);
    expect(describePlanned(shown)).toBe('adopt Deployment web: spec.image → "a"');
  });

  it("tell what an update changes", () => {
    const { shown } = resource("update");
    expect(planContents({ resources: [resource("update")], ...NONE }, DIGESTS).steps[0]?.fields).toMatchObject([
      { from: '"theirs"' },
    ]);
    expect(describePlanned(shown)).toBe('update Deployment web: spec.image "theirs" → "a"');
  });

  it("tell why a step would fail", () => {
    const refusals = new Map([["u", "RowConflict: it has another owner"]]);
    const { steps } = planContents({ ...NONE, resources: [resource("adopt")], refusals }, DIGESTS);
    expect(steps[0]).toMatchObject({ action: "adopt", refusal: "RowConflict: it has another owner" });
  });

  it("are not made of what could not be looked up", () => {
    const unchecked = resource("unchecked");
    const shown = { ...unchecked.shown, notChecked: "whether it is created: forbidden" };
    expect(() => planContents({ resources: [{ ...unchecked, shown }], ...NONE }, DIGESTS)).toThrow(
      "cannot look up web: whether it is created: forbidden",
    );
  });
});

describe("a plan", () => {
  const web = resource("update");
  const withFields = (...fields: ResourcePlan["fields"]) => ({ ...web, shown: { ...web.shown, fields } });
  const stepsOf = (...resources: PlannedResource[]) => planContents({ ...NONE, resources }, DIGESTS).steps;

  it("counts what changes resources, by what is done to them", () => {
    const { actions } = planContents({ ...NONE, resources: STEP_ACTIONS.map(resource) }, DIGESTS);
    expect(actions).toEqual({ create: 1, update: 4, replace: 1, delete: 1 });
  });

  it("says how many steps and fields it leaves out, as it is bounded", () => {
    const bounded = (count: number) =>
      planContents({ ...NONE, resources: Array<PlannedResource>(count).fill(web) }, DIGESTS);
    expect([bounded(MAX_STEPS).omitted, bounded(MAX_STEPS + 2).omitted]).toEqual([undefined, 2]);
    expect(bounded(MAX_STEPS + 2)).toMatchObject({ steps: { length: MAX_STEPS }, actions: { update: MAX_STEPS + 2 } });
    const fields = Array.from({ length: MAX_STEP_FIELDS + 2 }, (_, index) => ({ path: `a${index}`, after: 1 }));
    const [many, all] = stepsOf(withFields(...fields), withFields(...fields.slice(2)));
    expect([many, all]).toMatchObject([{ fields: { length: MAX_STEP_FIELDS }, omittedFields: 2 }, {}]);
    expect(all).not.toHaveProperty("omittedFields");
  });

  it("tells what is new, what is removed, and what is not to be told", () => {
    const secret = { path: "c", before: "[secret]", after: "[unknown]" };
    const [step] = stepsOf(withFields({ path: "a", after: 1 }, { path: "b", before: 2 }, secret));
    const told = { path: "c", from: "[secret]", to: "[unknown]" };
    expect(step?.fields).toEqual([{ path: "a", to: "1" }, { path: "b", from: "2" }, told]);
  });

  it("names the object of a step, and deletes what is in no state", () => {
    const object = { ...web, change: { ...web.change, inputs: { manifest: namespace("acme-dev") } } };
    const steps = new Map(Object.entries({ u: "step", "uid-of-cut-off": "deletion" }));
    const planned = { ...NONE, resources: [object, web], untracked: [namespace("cut-off")] };
    const [ofObject, other, removal] = planContents(planned, { ...DIGESTS, steps }).steps;
    expect(ofObject).toMatchObject({ id: "v1/Namespace//acme-dev", digest: "step" });
    expect(other).not.toHaveProperty("id");
    const cut = { type: "Namespace", name: "cut-off", id: "v1/Namespace//cut-off", digest: "deletion" };
    expect(removal).toEqual({ action: "delete", fields: [], ...cut });
  });
});

it("an approval names no namespace of an object that has none", () => {
  const spec = { object: { name: "web" }, digest: "d" } as Plan["spec"];
  expect(approvalWords(memcached, { spec })).toBe("memcacheds.cache.example.com web --digest d");
});
