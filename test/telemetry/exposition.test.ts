import { describe, expect, it } from "vitest";
import { parseExposition, quantileOf } from "../../src/telemetry/exposition";
import { createMetrics } from "../../src/telemetry/metrics";

it("parseExposition reads what our own metrics write, whatever the labels hold", async () => {
  const metrics = createMetrics();
  metrics.driftRepairs.inc({ kind: 'a "b" \\ }\n' }, 3);
  const samples = parseExposition(await metrics.registry.metrics());
  expect(samples).toContainEqual({
    name: "kindstack_drift_repairs_total",
    labels: { kind: 'a "b" \\ }\n' },
    value: 3,
  });
  expect(samples).toContainEqual({ name: "kindstack_shards_held", labels: {}, value: 0 });
});

describe("quantileOf", () => {
  it("interpolates within the bucket, over all labels", async () => {
    const metrics = createMetrics();
    for (const kind of ["a", "b"]) {
      const labels = { kind, operation: "up", result: "succeeded" };
      for (const seconds of [0.6, 0.7, 0.9, 4]) metrics.updateDuration.observe(labels, seconds);
    }
    const samples = parseExposition(await metrics.registry.metrics());
    expect(quantileOf(0.5, samples, "kindstack_update_duration_seconds")).toBeCloseTo(0.75);
    expect(quantileOf(0.75, samples, "kindstack_update_duration_seconds")).toBeCloseTo(1);
    expect(quantileOf(0.9, samples, "kindstack_update_duration_seconds")).toBeCloseTo(4.2);
  });

  it("is unknown when nothing was observed", async () => {
    const samples = parseExposition(await createMetrics().registry.metrics());
    expect(quantileOf(0.5, samples, "kindstack_update_duration_seconds")).toBeUndefined();
  });
});
