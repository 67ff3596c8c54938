import { expect, it } from "vitest";
import { compareVerdicts } from "./compared-verdicts";
import { useServedAdmission } from "./test-admission";

const admission = useServedAdmission();

/** `verdicts.slow.test.ts` compares 10,000. */
it("the policies allow of random objects what a second reading of their tenant allows", async () => {
  const { allowed, refused } = await compareVerdicts(admission, 400, 48);
  for (const count of [allowed, refused]) expect(count).toBeGreaterThan(50);
});
