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

/** `verdicts.slow.test.ts` compares 10,000. */
it("the policies allow of random objects what a second reading of their tenant allows", {
  timeout: 120_000,
}, async () => {
  const { allowed, refused } = await compareVerdicts(admission, 400, 48);
  for (const count of [allowed, refused]) expect(count).toBeGreaterThan(50);
});
