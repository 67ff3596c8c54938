import { availableParallelism } from "node:os";
import { GO_OPERATOR } from "./peers";
import type { Figure, Section } from "./results";

/** How many objects are made in which part of the bench. */
export interface BurstSize {
  objects: number;
  namespaces: number;
  kubectl: number;
  stock: number;
}

/** What was done to all objects at once. */
export interface BurstStep {
  ms: number;
  cliProcesses: number;
}

export type BurstLife = Record<"created" | "changed" | "deleted", BurstStep>;

export interface BurstMeasured {
  size: BurstSize;
  kubectl: { createdMs: number; readyMs: number };
  /** In one namespace, and in many. */
  one: BurstLife;
  many: BurstLife;
  bare: BurstLife;
  stock: BurstStep;
  /** Of the operator, and of it and its CLI processes together. */
  peakMiB: number;
  treePeakMiB: number;
}

/** As many as the figures of the operator in Go are for. */
export const KUBECTL_OBJECTS = 500;

export function burstSection(measured: BurstMeasured): Section {
  const { size, kubectl, one, many, bare, stock, peakMiB, treePeakMiB } = measured;
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
      ...figuresOfKubectl(size.kubectl, kubectl),
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

function figuresOfKubectl(objects: number, { createdMs, readyMs }: { createdMs: number; readyMs: number }): Figure[] {
  return [
    {
      what: `${objects} by kubectl create: from the first one until all are Ready`,
      value: readyMs / 1000,
      unit: "s",
      ...(objects === KUBECTL_OBJECTS && {
        against: { what: GO_OPERATOR, value: 6.8, range: [5.9, 6.8], measured: "elsewhere" },
        mark: { of: "ratio", at: "most", limit: 1 },
      }),
    },
    { what: "of which kubectl create alone", value: createdMs / 1000, unit: "s" },
  ];
}

function figuresOf(
  where: string,
  { objects, stock: sample }: BurstSize,
  life: BurstLife,
  bare: BurstLife,
  stock: BurstStep,
): Figure[] {
  const inProportion = (value: number) => (value / sample) * objects;
  const time = (name: keyof BurstLife): Figure => ({
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
