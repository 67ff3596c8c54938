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

describe("what a preview says", () => {
  it.each([
    ["an update", false, 40],
    ["a deletion", true, 15],
  ])("is what %s does", async (_, deleted, numRuns) => {
    await fc.assert(
      fc.asyncProperty(scenarios(deleted), (scenario) => stage.play(scenario)),
      { numRuns, seed: 47 },
    );
  });

  it("is what happens to the objects of several files, of all kinds", async () => {
    const property = fc.asyncProperty(subjects, fc.boolean(), (all, refresh) => kindsStage.play(all, refresh));
    await fc.assert(property, { numRuns: 12, seed: 47 });
  });
});
