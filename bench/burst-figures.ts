import { availableParallelism } from "node:os";
import type { Lifecycle } from "./lifecycle";
import { atLeast, atMost, beside, type Figure, type Section, seconds } from "./results";

/** How many objects are made in which part of the bench. */
export interface BurstSize {
  objects: number;
  namespaces: number;
  stock: number;
}

export interface BurstMeasured {
  size: BurstSize;
  /** In one namespace, and in many. */
  one: Lifecycle;
  many: Lifecycle;
  /** By one update each: as a platform team runs it, and of the bare engine. */
  plain: Lifecycle;
  bare: Lifecycle;
  /** Milliseconds of the sample. */
  stockMs: number;
  /** Of the operator, and of it and its engine together. */
  peakMiB: number;
  treePeakMiB: number;
}

export function burstSection(measured: BurstMeasured): Section {
  const { size, one, many, peakMiB, treePeakMiB } = measured;
  return {
    id: "burst",
    title: `${size.objects} PostgresWriters at once`,
    notes: [
      "Created by one client with 32 requests at a time; the time runs from the first request until the last object is Ready, " +
        "or gone. The rows are counted after each step.",
      "One pulumi up is what a platform team without an operator runs: the CLI with its language host and the SDK's process for " +
        "dynamic providers, with all manifests in a file; the state is saved once. A bare update has the same program and " +
        "what registers, provides and saves in the operator.",
      `The stock way is createOrSelectStack and up for each object, ${availableParallelism()} at a time, on a sample of ` +
        `${size.stock}: ${(measured.stockMs / 1000).toFixed(0)} s. Its time for ${size.objects} is that of the sample in proportion.`,
      "The operator's peak is VmHWM of its process over all of this section; with its engine, the largest sum of " +
        "resident sizes in samples five times a second.",
    ],
    figures: [
      ...figuresOf("in one namespace", one, measured),
      ...figuresOf(`in ${size.namespaces} namespaces`, many, measured),
      { what: "peak memory of the operator", value: peakMiB, unit: "MiB" },
      {
        what: "peak memory of the operator with its engine",
        value: treePeakMiB,
        unit: "MiB",
        mark: atMost(380),
      },
    ],
  };
}

function figuresOf(where: string, lifecycle: Lifecycle, { size, plain, bare, stockMs }: BurstMeasured): Figure[] {
  const { objects, stock: sample } = size;
  const compared = (what: string, name: keyof Lifecycle, alternative: string, ms: number): Figure => ({
    what,
    ...seconds(lifecycle[name]),
    against: beside(alternative, seconds(ms)),
  });
  const stockWay = `the stock way, ${objects} in proportion to ${sample}`;
  return (["created", "changed", "deleted"] as const).flatMap((name): Figure[] => {
    const command = name === "deleted" ? "destroy" : "up";
    const byPlain = compared(`${name} ${where}`, name, `one pulumi ${command} of all ${objects}`, plain[name]);
    const byBare = compared("the same", name, `one bare update of all ${objects}`, bare[name]);
    if (name !== "created") return [byPlain, byBare];
    return [
      byPlain,
      byBare,
      compared("the same", name, stockWay, (stockMs / sample) * objects),
      {
        what: `created a second ${where}`,
        value: objects / (lifecycle.created / 1000),
        unit: "/s",
        mark: atLeast(where === "in one namespace" ? 100 : 130),
      },
    ];
  });
}
