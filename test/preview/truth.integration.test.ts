import fc from "fast-check";
import { beforeAll, describe, it } from "vitest";
import { openStage, scenarios } from "./truth";

let stage: Awaited<ReturnType<typeof openStage>>;
beforeAll(async () => {
  stage = await openStage();
  return () => stage.close();
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
});
