import fc from "fast-check";
import { beforeAll, describe, it } from "vitest";
import { openKindsStage, subjects } from "./kinds-truth";
import { openStage, scenarios } from "./truth";

let stage: Awaited<ReturnType<typeof openStage>>;
let kindsStage: Awaited<ReturnType<typeof openKindsStage>>;
beforeAll(async () => {
  stage = await openStage();
  kindsStage = await openKindsStage();
  return async () => {
    await stage.close();
    await kindsStage.close();
  };
});

describe("what a preview says, in thousands of cases", () => {
  it.each([
    ["an update", false, 2000],
    ["a deletion", true, 500],
  ])("is what %s does", { timeout: 1_800_000 }, async (_, deleted, numRuns) => {
    await fc.assert(
      fc.asyncProperty(scenarios(deleted), (scenario) => stage.play(scenario)),
      { numRuns, seed: 4747 },
    );
  });

  it("is what happens to the objects of several files, of all kinds", { timeout: 3_600_000 }, async () => {
    const property = fc.asyncProperty(subjects, fc.boolean(), (all, refresh) => kindsStage.play(all, refresh));
    // Side by side: most of the time goes to waiting for deletions.
    await Promise.all(Array.from({ length: 8 }, (_, seed) => fc.assert(property, { numRuns: 125, seed })));
  });
});
