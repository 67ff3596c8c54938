import fs from "node:fs/promises";
import { availableParallelism } from "node:os";
import path from "node:path";
import { execa } from "execa";
import { withBareCli } from "./bare-cli";
import { type BenchCluster, type BenchContext, withBenchCluster } from "./cluster";
import { isGone, isReady, ObjectWatch } from "./object-watch";
import type { OperatorProcess } from "./operator-process";
import { GO_OPERATOR } from "./peers";
import { memoryMiB, sampleTree } from "./processes";
import type { Figure, Section } from "./results";
import { measureStock } from "./stock";
import {
  CHANGED_AGE,
  createNamespaces,
  forEachAtOnce,
  keyOf,
  type Writer,
  writerManifest,
  writersOf,
  writersProgram,
  writerType,
} from "./writers";

const FULL = { objects: 1_000, namespaces: 50, kubectl: 500, stock: 12 };
const QUICK = { objects: 100, namespaces: 10, kubectl: 50, stock: 2 };
const NAME = "burst";

/** Milliseconds and CLI processes of what was done to all objects at once. */
interface Step {
  ms: number;
  cliProcesses: number;
}
type Life = Record<"created" | "changed" | "deleted", Step>;

/** Many PostgresWriters at once: made, changed, deleted. */
export async function burst(context: BenchContext): Promise<Section> {
  const size = context.quick ? QUICK : FULL;
  return withBenchCluster(context, async (cluster) => {
    const operator = await cluster.startOperator();
    const stopSampling = sampleTree(operator.pid);
    const watch = await ObjectWatch.open(cluster.client, await writerType(cluster.client), context.signal);
    try {
      await warmUp(cluster, watch);
      const kubectl = await throughKubectl(context, cluster, watch, writersOf("kubectl", size.kubectl));
      const measured = { context, cluster, operator, watch };
      const one = await liveAndDie(measured, writersOf("one", size.objects));
      const many = await liveAndDie(measured, writersOf("many", size.objects, size.namespaces));
      const peakMiB = await memoryMiB(operator.pid, "peak");
      const { peakMiB: treePeakMiB } = await stopSampling();
      await operator.stop();
      const bare = await bareLife(context, cluster, size.objects);
      const stock = await measureStock(context, cluster, writersOf("stock", size.stock), availableParallelism());
      return {
        id: NAME,
        title: `${size.objects} PostgresWriters at once`,
        notes: [
          "Created by one client with 32 requests at a time; the time runs from the first request until the last object is Ready, " +
            "or gone. The rows are counted after each step.",
          `The stock way is createOrSelectStack and up for each object, ${availableParallelism()} at a time, on a sample of ` +
            `${size.stock}: ${seconds(stock.ms)} s. Its time for ${size.objects} is that of the sample in proportion.`,
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
    } finally {
      await stopSampling();
      watch.close();
    }
  });
}

interface Measured {
  context: BenchContext;
  cluster: BenchCluster;
  operator: OperatorProcess;
  watch: ObjectWatch;
}

/** The first object opens connections and has the compiler do its work. */
async function warmUp({ client }: BenchCluster, watch: ObjectWatch): Promise<void> {
  const [writer] = writersOf("default", 1) as [Writer];
  const type = await writerType(client);
  await client.create(type, writerManifest(writer));
  await watch.until([keyOf(writer)], isReady);
  await client.delete(type, writer.name, writer.namespace);
  await watch.until([keyOf(writer)], isGone);
}

/** Milliseconds from the first object's creation until all were created, and until all were Ready. */
async function throughKubectl(
  { detail, signal }: BenchContext,
  cluster: BenchCluster,
  watch: ObjectWatch,
  writers: readonly Writer[],
): Promise<{ createdMs: number; readyMs: number }> {
  await createNamespaces(cluster.client, writers);
  const file = path.join(cluster.scratch, "writers.json");
  const items = writers.map((writer) => writerManifest(writer));
  await fs.writeFile(file, JSON.stringify({ apiVersion: "v1", kind: "List", items }));
  const keys = writers.map(keyOf);
  const created = watch.until(keys, (object) => object !== undefined);
  const ready = watch.until(keys, isReady, (done) => detail(`kubectl: ${done} of ${writers.length} Ready`));
  const both = Promise.all([created, ready]);
  both.catch(() => {}); // kubectl may fail first
  await execa("kubectl", ["create", "-f", file], { env: cluster.dev.env, cancelSignal: signal });
  const [{ first, last }, { last: lastReady }] = await both;
  const type = await writerType(cluster.client);
  await forEachAtOnce(writers, ({ name, namespace }) => cluster.client.delete(type, name, namespace));
  await watch.until(keys, isGone);
  return { createdMs: last - first, readyMs: lastReady - first };
}

async function liveAndDie(measured: Measured, writers: readonly Writer[]): Promise<Life> {
  const { client } = measured.cluster;
  const type = await writerType(client);
  await createNamespaces(client, writers);
  const created = await step(measured, writers, "Ready", isReady, (writer) =>
    client.create(type, writerManifest(writer)),
  );
  await expectRows(measured.cluster, writers.length, "true");
  const changed = await step(measured, writers, "changed", isChanged, ({ name, namespace }) =>
    client.mergePatch(type, name, namespace, { spec: { age: CHANGED_AGE } }),
  );
  await expectRows(measured.cluster, writers.length, `age = ${CHANGED_AGE}`);
  const deleted = await step(measured, writers, "gone", isGone, ({ name, namespace }) =>
    client.delete(type, name, namespace),
  );
  await expectRows(measured.cluster, 0, "true");
  return { created, changed, deleted };
}

async function step(
  { context: { detail }, operator, watch }: Measured,
  writers: readonly Writer[],
  what: string,
  isDone: Parameters<ObjectWatch["until"]>[1],
  work: (writer: Writer) => Promise<unknown>,
): Promise<Step> {
  const before = await operator.cliProcesses();
  const all = watch.until(writers.map(keyOf), isDone, (done) => detail(`${done} of ${writers.length} ${what}`));
  all.catch(() => {}); // the work may fail first
  const started = performance.now();
  await forEachAtOnce(writers, work);
  const { last } = await all;
  return { ms: last - started, cliProcesses: (await operator.cliProcesses()) - before };
}

async function bareLife(context: BenchContext, cluster: BenchCluster, count: number): Promise<Life> {
  const writers = writersOf("bare", count);
  return withBareCli(context, cluster, async (bare) => {
    const timed = async (what: string, update: () => Promise<number>): Promise<Step> => {
      context.detail(`one bare update of ${count}: ${what}`);
      const before = await bare.cliProcesses();
      const ms = await update();
      return { ms, cliProcesses: (await bare.cliProcesses()) - before };
    };
    const many = true;
    const created = await timed("created", () => bare.up(NAME, writersProgram(writers), { many }));
    await expectRows(cluster, count, "true");
    const changed = await timed("changed", () => bare.up(NAME, writersProgram(writers, CHANGED_AGE), { many }));
    await expectRows(cluster, count, `age = ${CHANGED_AGE}`);
    const deleted = await timed("deleted", () => bare.destroy(NAME, { many }));
    await expectRows(cluster, 0, "true");
    return { created, changed, deleted };
  });
}

async function expectRows(cluster: BenchCluster, count: number, condition: string): Promise<void> {
  const found = await cluster.queryNumber(`select count(*) as number from students where ${condition}`);
  if (found !== count) throw new Error(`there are ${found} rows where ${condition}, not ${count}`);
}

function figuresOfKubectl(objects: number, { createdMs, readyMs }: { createdMs: number; readyMs: number }): Figure[] {
  return [
    {
      what: `${objects} by kubectl create: from the first one until all are Ready`,
      value: readyMs / 1000,
      unit: "s",
      ...(objects === FULL.kubectl && {
        against: { what: GO_OPERATOR, value: 6.8, range: [5.9, 6.8], measured: "elsewhere" },
        mark: { of: "ratio", at: "most", limit: 1 },
      }),
    },
    { what: "of which kubectl create alone", value: createdMs / 1000, unit: "s" },
  ];
}

function figuresOf(
  where: string,
  { objects, stock: sample }: typeof FULL,
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

function isChanged(object: Parameters<typeof isReady>[0]): boolean {
  return isReady(object) && (object?.spec as { age?: number } | undefined)?.age === CHANGED_AGE;
}

function seconds(milliseconds: number): string {
  return (milliseconds / 1000).toFixed(0);
}
