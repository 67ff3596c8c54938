import { Registry } from "prom-client";
import { expect, it } from "vitest";
import { addEngineMetrics } from "../../src/telemetry/metrics";

it("the engine's metrics are those of the moment of a scrape", async () => {
  const registry = new Registry();
  const phaseSeconds = { lock: 1, load: 2, run: 3, save: 4 };
  const source = {
    counts: { operations: 5, successors: 1, crashes: 0, phaseSeconds },
    usage: async () => ({ memoryBytes: 1_000, descriptors: 12 }),
  };
  addEngineMetrics(registry, source);
  source.counts.operations++;

  const lines = (await registry.metrics()).split("\n");

  expect(lines).toContain("kindstack_engine_operations_total 6");
  expect(lines).toContain('kindstack_engine_phase_seconds_total{phase="run"} 3');
  expect(lines).toContain("kindstack_engine_memory_bytes 1000");
  expect(lines).toContain("kindstack_engine_descriptors 12");
});
