import type { BenchCluster, BenchContext } from "./cluster";
import { isGone, isReady, ObjectWatch } from "./object-watch";
import type { OperatorProcess } from "./operator-process";
import {
  CHANGED_AGE,
  createNamespaces,
  forEachAtOnce,
  keyOf,
  type Writer,
  writerManifest,
  writersOf,
  writerType,
} from "./writers";

/** What was done to all objects at once. */
export interface Step {
  ms: number;
  cliProcesses: number;
}

export type Lifecycle = Record<"created" | "changed" | "deleted", Step>;

/** Where lifecycles are measured. */
export interface Measured {
  context: BenchContext;
  cluster: BenchCluster;
  operator: OperatorProcess;
  watch: ObjectWatch;
}

/**
 * Gives the work a new operator, which ends after it.
 *
 * @param start starts one that finds the CRDs, or installs them
 */
export async function withOperator<T>(
  context: BenchContext,
  cluster: BenchCluster,
  start: () => Promise<OperatorProcess>,
  work: (measured: Measured) => Promise<T>,
): Promise<T> {
  const operator = await start();
  const watch = await ObjectWatch.open(cluster.client, await writerType(cluster.client), context.signal);
  try {
    return await work({ context, cluster, operator, watch });
  } finally {
    watch.close();
    await operator.stop();
  }
}

/** Objects that come and go before: they open connections and have the compiler do its work. */
export async function warmUp({ client }: BenchCluster, watch: ObjectWatch, objects = 1): Promise<void> {
  const writers = writersOf("default", objects);
  const type = await writerType(client);
  await forEachAtOnce(writers, (writer) => client.create(writerManifest(writer)));
  await watch.until(writers.map(keyOf), isReady);
  await forEachAtOnce(writers, ({ name, namespace }) => client.delete(type, name, namespace));
  await watch.until(writers.map(keyOf), isGone);
}

/** All are created, changed and deleted at once; the rows are counted after each step. */
export async function runLifecycle(measured: Measured, writers: readonly Writer[]): Promise<Lifecycle> {
  const { client } = measured.cluster;
  const type = await writerType(client);
  await createNamespaces(client, writers);
  const created = await step(measured, writers, "Ready", isReady, (writer) => client.create(writerManifest(writer)));
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

/** @throws Error when there are more, or fewer */
export async function expectRows(cluster: BenchCluster, count: number, condition: string): Promise<void> {
  const found = await cluster.queryNumber(`select count(*) as number from students where ${condition}`);
  if (found !== count) throw new Error(`there are ${found} rows where ${condition}, not ${count}`);
}

function isChanged(object: Parameters<typeof isReady>[0]): boolean {
  return isReady(object) && (object?.spec as { age?: number } | undefined)?.age === CHANGED_AGE;
}
