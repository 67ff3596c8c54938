import fc from "fast-check";
import { beforeAll, describe, it } from "vitest";
import { openStage, scenarios } from "./truth";

let stage: Awaited<ReturnType<typeof openStage>>;
beforeAll(async () => {
  stage = await openStage();
  return () => stage.close();
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
});
