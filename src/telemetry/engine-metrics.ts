import { Counter, Gauge, type Registry } from "prom-client";
import type { EngineProcesses } from "../automation/engine-processes";

/** What the engine has done and has in use, asked at every scrape. */
export function addEngineMetrics(registry: Registry, source: Pick<EngineProcesses, "counts" | "usage">): void {
  const registers = [registry];
  const counted = (name: string, help: string, value: () => number) =>
    new Counter({
      name,
      help,
      registers,
      collect() {
        this.reset();
        this.inc(value());
      },
    });
  counted(
    "kindstack_engine_operations_total",
    "Operations that Pulumi's engine has begun.",
    () => source.counts.operations,
  );
  counted(
    "kindstack_engine_successors_total",
    "Engine processes that took over from one that had done its share.",
    () => source.counts.successors,
  );
  counted("kindstack_engine_crashes_total", "Engine processes that ended unexpectedly.", () => source.counts.crashes);
  new Counter({
    name: "kindstack_engine_phase_seconds_total",
    help: "Time that operations took in the engine, by phase: lock, load, run, save.",
    labelNames: ["phase"],
    registers,
    collect() {
      this.reset();
      for (const [phase, seconds] of Object.entries(source.counts.phaseSeconds)) this.inc({ phase }, seconds);
    },
  });
  const descriptors = new Gauge({
    name: "kindstack_engine_descriptors",
    help: "File descriptors of the engine's processes.",
    registers,
  });
  new Gauge({
    name: "kindstack_engine_memory_bytes",
    help: "Resident memory of the engine's processes.",
    registers,
    async collect() {
      const usage = await source.usage();
      this.set(usage.memoryBytes);
      descriptors.set(usage.descriptors);
    },
  });
}
