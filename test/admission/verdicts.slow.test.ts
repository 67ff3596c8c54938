import { expect, it } from "vitest";
import { compareVerdicts } from "./compared-verdicts";
import { useServedAdmission } from "./test-admission";

const admission = useServedAdmission();

/** `KINDSTACK_SEED=7` compares others. */
it("the policies allow of random objects what a second reading of their tenant allows", {
  timeout: 1_800_000,
}, async () => {
  const { allowed, refused } = await compareVerdicts(admission, 10_000, Number(process.env.KINDSTACK_SEED ?? 1));
  for (const count of [allowed, refused]) expect(count).toBeGreaterThan(1_000);
});
