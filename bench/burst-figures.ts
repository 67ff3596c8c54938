import { availableParallelism } from "node:os";
import type { Life, Step } from "./lives";
import type { Figure, Section } from "./results";

/** How many objects are made in which part of the bench. */
export interface BurstSize {
  objects: number;
  namespaces: number;
  stock: number;
}

export interface BurstMeasured {
  size: BurstSize;
  /** In one namespace, and in many. */
  one: Life;
  many: Life;
  bare: Life;
  stock: Step;
  /** Of the operator, and of it and its CLI processes together. */
  peakMiB: number;
  treePeakMiB: number;
}

export function burstSection(measured: BurstMeasured): Section {
  const { size, one, many, bare, stock, peakMiB, treePeakMiB } = measured;
  return {
    id: "burst",
    title: `${size.objects} PostgresWriters at once`,
    notes: [
      "Created by one client with 32 requests at a time; the time runs from the first request until the last object is Ready, " +
        "or gone. The rows are counted after each step.",
      `The stock way is createOrSelectStack and up for each object, ${availableParallelism()} at a time, on a sample of ` +
        `${size.stock}: ${(stock.ms / 1000).toFixed(0)} s. Its time for ${size.objects} is that of the sample in proportion.`,
      "The operator's peak is VmHWM of its process over all of this section; with its CLI processes, the largest sum of " +
        "resident sizes in samples five times a second.",
    ],
    figures: [
      ...figuresOf("in one namespace", size, one, bare, stock),
      ...figuresOf(`in ${size.namespaces} namespaces`, size, many, bare, stock),
      {
        what: "peak memory of the operator",
        value: peakMiB,
        unit: "MiB",
        mark: { of: "value", at: "most", limit: 400 },
      },
      { what: "peak memory of the operator with its CLI processes", value: treePeakMiB, unit: "MiB" },
    ],
  };
}

function figuresOf(
  where: string,
  { objects, stock: sample }: BurstSize,
  life: Life,
  bare: Life,
  stock: Step,
): Figure[] {
  const inProportion = (value: number) => (value / sample) * objects;
  const time = (name: keyof Life): Figure => ({
    what: `${name} ${where}`,
    value: life[name].ms / 1000,
    unit: "s",
    against: { what: `one bare update of all ${objects}`, value: bare[name].ms / 1000, measured: "here" },
  });
  return [
    { ...time("created"), mark: { of: "ratio", at: "most", limit: 1.5 } },
    {
      what: "the same",
      value: life.created.ms / 1000,
      unit: "s",
      against: {
        what: `the stock way, ${objects} in proportion to ${sample}`,
        value: inProportion(stock.ms) / 1000,
        measured: "here",
      },
    },
    {
      what: `created a second ${where}`,
      value: objects / (life.created.ms / 1000),
      unit: "/s",
      mark: { of: "value", at: "least", limit: 100 },
    },
    {
      what: "CLI processes for that",
      value: life.created.cliProcesses,
      unit: "count",
      against: {
        what: `the stock way, ${objects} in proportion to ${sample}`,
        value: inProportion(stock.cliProcesses),
        measured: "here",
      },
    },
    time("changed"),
    { what: "CLI processes for that", value: life.changed.cliProcesses, unit: "count" },
    time("deleted"),
    { what: "CLI processes for that", value: life.deleted.cliProcesses, unit: "count" },
  ];
}
