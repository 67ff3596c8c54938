import fs from "node:fs/promises";
import Type from "typebox";
import Value from "typebox/value";

const range = Type.Tuple([Type.Number(), Type.Number()]);

/** What a figure is compared to. */
const alternative = Type.Object({
  what: Type.String(),
  /** In the figure's unit. */
  value: Type.Number(),
  range: Type.Optional(range),
});

const figure = Type.Object({
  what: Type.String(),
  value: Type.Number(),
  unit: Type.Enum(["s", "ms", "/s", "MiB", "%", "count", "exponent"]),
  /** The least and the most, where `value` is the median of several rounds. */
  range: Type.Optional(range),
  against: Type.Optional(alternative),
  /** What is to be reached: a limit of the value, or of its ratio to the alternative's. */
  mark: Type.Optional(
    Type.Object({ of: Type.Enum(["value", "ratio"]), at: Type.Enum(["most", "least"]), limit: Type.Number() }),
  ),
});

/** What so many objects cost, from nothing to all Ready. */
const sizePoint = Type.Object({
  objects: Type.Number(),
  seconds: Type.Number(),
  /** Of the operator and its engine. */
  cpuSeconds: Type.Number(),
  /** Of the operator, after it has come to rest with them. */
  residentMiB: Type.Number(),
  /** The most that operator and engine had together while they were created. */
  peakMiB: Type.Optional(Type.Number()),
  /** Of the state backend, with the history of updates. */
  stateBytes: Type.Number(),
  /** Of the objects' JSON, which is what etcd stores of them. */
  objectBytes: Type.Number(),
  /** To the API server. */
  requests: Type.Number(),
});

const section = Type.Object({
  id: Type.String(),
  title: Type.String(),
  /** How it was measured, where that does not go without saying. */
  notes: Type.Array(Type.String()),
  figures: Type.Array(figure),
  sizes: Type.Optional(Type.Array(sizePoint)),
});

const results = Type.Object({
  /** Smaller sizes, to see that everything works: no figures to be quoted. */
  quick: Type.Boolean(),
  /** ISO 8601. */
  measuredAt: Type.String(),
  seconds: Type.Number(),
  machine: Type.Object({ cpu: Type.String(), cores: Type.Number(), memoryGiB: Type.Number(), system: Type.String() }),
  versions: Type.Record(Type.String(), Type.String()),
  sections: Type.Array(section),
});

export type Alternative = Type.Static<typeof alternative>;
export type Figure = Type.Static<typeof figure>;
export type SizePoint = Type.Static<typeof sizePoint>;
export type Section = Type.Static<typeof section>;
export type Results = Type.Static<typeof results>;

/** How many times the alternative the figure is; `undefined` when it is compared to nothing. */
export function ratioOf({ value, against }: Figure): number | undefined {
  return against && value / against.value;
}

/** Whether the mark is reached; `undefined` when there is none. */
export function isReached(figure: Figure): boolean | undefined {
  const { mark } = figure;
  if (mark === undefined) return undefined;
  const reached = (mark.of === "ratio" ? ratioOf(figure) : figure.value) ?? Number.NaN;
  return mark.at === "most" ? reached <= mark.limit : reached >= mark.limit;
}

/** The median of several rounds, with the least and the most. */
export function summary(values: readonly number[]): { value: number; range: [least: number, most: number] } {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (index: number) => sorted[index] ?? Number.NaN;
  const middle = (sorted.length - 1) / 2;
  const value = (at(Math.floor(middle)) + at(Math.ceil(middle))) / 2;
  return { value, range: [at(0), at(sorted.length - 1)] };
}

/** A time in ms, or those of several rounds, as a figure of seconds. */
export function seconds(ms: number | readonly number[]): Pick<Figure, "unit" | "value" | "range"> {
  const quantity = typeof ms === "number" ? { value: ms / 1000 } : summary(ms.map((one) => one / 1000));
  return { unit: "s", ...quantity };
}

/** What a figure is compared to, as it was measured in the same run. */
export function beside(what: string, { value, range }: Pick<Figure, "value" | "range">): Alternative {
  return { what, value, ...(range && { range }) };
}

export function atMost(limit: number, of: "value" | "ratio" = "value"): NonNullable<Figure["mark"]> {
  return { of, at: "most", limit };
}

export function atLeast(limit: number): NonNullable<Figure["mark"]> {
  return { of: "value", at: "least", limit };
}

/**
 * Fits `y = factor × x ^ exponent` by least squares of the logarithms. With an exponent of 1 the cost grows as the size does.
 *
 * @param points at least two, of different and positive x and positive y
 */
export function fitPower(points: readonly { x: number; y: number }[]): { exponent: number; factor: number } {
  const logs = points.map(({ x, y }) => ({ x: Math.log(x), y: Math.log(y) }));
  const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [x, y] = [mean(logs.map((log) => log.x)), mean(logs.map((log) => log.y))];
  const exponent = mean(logs.map((log) => (log.x - x) * (log.y - y))) / mean(logs.map((log) => (log.x - x) ** 2));
  return { exponent, factor: Math.exp(y - exponent * x) };
}

/** @throws Error naming what is wrong in the file */
export async function readResults(file: string): Promise<Results> {
  const parsed: unknown = JSON.parse(await fs.readFile(file, "utf8"));
  const [error] = Value.Errors(results, parsed);
  if (error !== undefined) throw new Error(`${file} holds no results: ${error.instancePath} ${error.message}`);
  return parsed as Results;
}

export async function writeResults(file: string, written: Results): Promise<void> {
  await fs.writeFile(file, `${JSON.stringify(written, null, 2)}\n`);
}
