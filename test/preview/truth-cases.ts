import fc from "fast-check";
import { beforeAll, describe, it } from "vitest";
import { openKindsStage, subjects } from "./kinds-truth";
import { openStage, scenarios } from "./truth";

/** How many cases there are of each, and which. */
interface Search {
  updates: number;
  deletions: number;
  /** Each of these at once, with these seeds: most of the time goes to waiting for deletions. */
  files: { cases: number; seeds: readonly number[] };
  seed: number;
  timeout?: number;
}

/** Compares what previews say with what updates and deletions do. */
export function comparePreviews({ updates, deletions, files, seed, ...limit }: Search): void {
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
      ["an update", false, updates],
      ["a deletion", true, deletions],
    ])("is what %s does", limit, async (_, deleted, numRuns) => {
      const property = fc.asyncProperty(scenarios(deleted), (scenario) => stage.play(scenario));
      await fc.assert(property, { numRuns, seed });
    });

    it("is what happens to the objects of several files, of all kinds", limit, async () => {
      const property = fc.asyncProperty(subjects, fc.boolean(), (all, refresh) => kindsStage.play(all, refresh));
      await Promise.all(files.seeds.map((seed) => fc.assert(property, { numRuns: files.cases, seed })));
    });
  });
}
