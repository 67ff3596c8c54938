import { describe, expect, it } from "vitest";
import { describePlanned } from "../../src/controller/describe";
import { planContents } from "../../src/plan/contents";
import type { PlannedResource } from "../../src/plan/effects";
import type { ResourcePlan } from "../../src/plan/resource-plan";

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
