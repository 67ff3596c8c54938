import { describe, expect, it } from "vitest";
import { describePlanned } from "../../src/controller/compare";
import type { PlannedResource } from "../../src/preview/effects";
import { planContents } from "../../src/preview/plan-contents";
import type { ResourcePlan } from "../../src/preview/report";

const DIGESTS = { digest: "d", group: "g", steps: new Map(), creations: new Map() };

function resource(operation: ResourcePlan["operation"]): PlannedResource {
  const shown = {
    name: "web",
    type: "Deployment",
    operation,
    fields: [{ path: "spec.image", before: "theirs", after: "a" }],
  };
  return { change: { urn: "u", type: "t", name: "web", operation: "create" }, shown, refused: false };
}

describe("plans and conditions, which others may read", () => {
  it("tell no value of what is adopted", () => {
    const { shown } = resource("adopt");
    expect(planContents([resource("adopt")], [], DIGESTS).steps[0]?.fields).toEqual([
      { path: "spec.image", to: '"a"' },
    ]);
    expect(describePlanned(shown)).toBe('adopt Deployment web: spec.image → "a"');
  });

  it("tell what an update changes", () => {
    const { shown } = resource("update");
    expect(planContents([resource("update")], [], DIGESTS).steps[0]?.fields).toMatchObject([{ from: '"theirs"' }]);
    expect(describePlanned(shown)).toBe('update Deployment web: spec.image "theirs" → "a"');
  });

  it("are not made of what could not be looked up", () => {
    expect(() => planContents([{ ...resource("unchecked"), unknown: "forbidden" }], [], DIGESTS)).toThrow(
      "cannot look up web: forbidden",
    );
  });
});
