import { expect, it } from "vitest";
import { sumOfMetric } from "../../bench/operator-process";

const TEXT = `# HELP updates_total Updates.
# TYPE updates_total counter
updates_total{kind="A",result="ok"} 3
updates_total{kind="B",result="ok"} 4.5
updates_total_created 9
plain 7
`;

it("a metric is summed over all its samples, or over those with a label, and is 0 when there are none", () => {
  expect(sumOfMetric(TEXT, "updates_total")).toBe(7.5);
  expect(sumOfMetric(TEXT, "updates_total", { kind: "B" })).toBe(4.5);
  expect(sumOfMetric(TEXT, "plain")).toBe(7);
  expect(sumOfMetric(TEXT, "other")).toBe(0);
});
