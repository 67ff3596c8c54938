import { Counter, Gauge, type Registry } from "prom-client";
import type { EngineProcesses } from "../automation/engine-processes";

/** What the engine has done and has in use, asked at every scrape. */
export function addEngineMetrics(registry: Registry, source: Pick<EngineProcesses, "counts" | "usage">): void {
  const registers = [registry];
  const counted = (name: string, count: "operations" | "successors" | "crashes", help: string) =>
    new Counter({
      name,
      help,
      registers,
      collect() {
        this.reset();
        this.inc(source.counts[count]);
      },
    });
  // Each asks for itself, as metrics do not wait for each other at a scrape; they get one answer.
  const used = (name: string, what: "memoryBytes" | "descriptors", help: string) =>
    new Gauge({
      name,
      help,
      registers,
      async collect() {
        this.set((await source.usage())[what]);
      },
    });
  counted("kindstack_engine_operations_total", "operations", "Operations that Pulumi's engine has begun.");
  counted(
    "kindstack_engine_successors_total",
    "successors",
    "Engine processes that took over from one that had done its share.",
  );
  counted("kindstack_engine_crashes_total", "crashes", "Engine processes that ended unexpectedly.");
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
  used("kindstack_engine_descriptors", "descriptors", "File descriptors of the engine's processes.");
  used("kindstack_engine_memory_bytes", "memoryBytes", "Resident memory of the engine's processes.");
}
