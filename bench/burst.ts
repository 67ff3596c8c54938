import fs from "node:fs/promises";
import { availableParallelism } from "node:os";
import path from "node:path";
import { execa } from "execa";
import { withBareCli } from "./bare-cli";
import { type BurstLife, type BurstSize, type BurstStep, burstSection, KUBECTL_OBJECTS } from "./burst-figures";
import { type BenchCluster, type BenchContext, withBenchCluster } from "./cluster";
import { isGone, isReady, ObjectWatch } from "./object-watch";
import type { OperatorProcess } from "./operator-process";
import { memoryMiB, sampleTree } from "./processes";
import type { Section } from "./results";
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

const FULL: BurstSize = { objects: 1_000, namespaces: 50, kubectl: KUBECTL_OBJECTS, stock: 12 };
const QUICK: BurstSize = { objects: 100, namespaces: 10, kubectl: 50, stock: 2 };

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
      return burstSection({ size, kubectl, one, many, bare, stock, peakMiB, treePeakMiB });
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

async function liveAndDie(measured: Measured, writers: readonly Writer[]): Promise<BurstLife> {
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
): Promise<BurstStep> {
  const before = await operator.cliProcesses();
  const all = watch.until(writers.map(keyOf), isDone, (done) => detail(`${done} of ${writers.length} ${what}`));
  all.catch(() => {}); // the work may fail first
  const started = performance.now();
  await forEachAtOnce(writers, work);
  const { last } = await all;
  return { ms: last - started, cliProcesses: (await operator.cliProcesses()) - before };
}

async function bareLife(context: BenchContext, cluster: BenchCluster, count: number): Promise<BurstLife> {
  const writers = writersOf("bare", count);
  const some = writersOf("warm-up", Math.ceil(count / 10));
  const stack = "burst";
  return withBareCli(context, cluster, async (bare) => {
    await bare.up(stack, writersProgram(some), { many: true }); // as the operator has been warmed up
    await bare.destroy(stack, { many: true });
    const timed = async (what: string, update: () => Promise<number>): Promise<BurstStep> => {
      context.detail(`one bare update of ${count}: ${what}`);
      const before = await bare.cliProcesses();
      const ms = await update();
      return { ms, cliProcesses: (await bare.cliProcesses()) - before };
    };
    const many = true;
    const created = await timed("created", () => bare.up(stack, writersProgram(writers), { many }));
    await expectRows(cluster, count, "true");
    const changed = await timed("changed", () => bare.up(stack, writersProgram(writers, CHANGED_AGE), { many }));
    await expectRows(cluster, count, `age = ${CHANGED_AGE}`);
    const deleted = await timed("deleted", () => bare.destroy(stack, { many }));
    await expectRows(cluster, 0, "true");
    return { created, changed, deleted };
  });
}

async function expectRows(cluster: BenchCluster, count: number, condition: string): Promise<void> {
  const found = await cluster.queryNumber(`select count(*) as number from students where ${condition}`);
  if (found !== count) throw new Error(`there are ${found} rows where ${condition}, not ${count}`);
}

function isChanged(object: Parameters<typeof isReady>[0]): boolean {
  return isReady(object) && (object?.spec as { age?: number } | undefined)?.age === CHANGED_AGE;
}
