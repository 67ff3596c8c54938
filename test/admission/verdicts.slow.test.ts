import { afterAll, beforeAll, expect, it } from "vitest";
import { controlPlane } from "../control-plane";
import { compareVerdicts } from "./compared-verdicts";
import { TestAdmission } from "./test-admission";

const admission = new TestAdmission(controlPlane());

beforeAll(async () => {
  await admission.open();
  await admission.serve();
});
afterAll(() => admission.close());

/** `KINDSTACK_SEED=7` compares others. */
it("the policies allow of random objects what a second reading of their tenant allows", {
  timeout: 1_800_000,
}, async () => {
  const { allowed, refused } = await compareVerdicts(admission, 10_000, Number(process.env.KINDSTACK_SEED ?? 1));
  for (const count of [allowed, refused]) expect(count).toBeGreaterThan(1_000);
});
