import { setTimeout as delay } from "node:timers/promises";
import { objectKey } from "../stacks/contract/object";
import type { BenchCluster, BenchContext } from "./cluster";
import { isGone, isReady, ObjectWatch } from "./object-watch";
import type { OperatorProcess } from "./operator-process";
import { atMost, type Figure, seconds } from "./results";
import { CHANGED_AGE, createNamespaces, forEachAtOnce, WRITER, type Writer, writerManifest } from "./writers";

/** Milliseconds that each step took all objects at once. */
export type Lifecycle = Record<"created" | "changed" | "deleted", number>;

/** An operator to measure, and a watch of PostgresWriters. */
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
  try {
    return await ObjectWatch.during(cluster.client, WRITER, context.signal, (watch) =>
      work({ context, cluster, operator, watch }),
    );
  } finally {
    await operator.stop();
  }
}

/** Objects that are created and deleted before: they open connections and have the compiler do its work. */
export async function warmUp(measured: Measured, writers: readonly Writer[]): Promise<void> {
  await createWriters(measured, writers);
  await deleteWriters(measured, writers);
}

/** Creates all at once, in namespaces that exist then; ends when all are Ready. */
export async function createWriters(measured: Measured, writers: readonly Writer[]): Promise<number> {
  const { client } = measured.cluster;
  await createNamespaces(client, writers);
  return atOnce(measured, writers, "Ready", isReady, (writer) => client.create(writerManifest(writer)));
}

export function deleteWriters(measured: Measured, writers: readonly Writer[]): Promise<number> {
  const { client } = measured.cluster;
  return atOnce(measured, writers, "gone", isGone, ({ name, namespace }) => client.delete(WRITER, name, namespace));
}

/**
 * All are created, changed and deleted at once.
 *
 * @param around is given each step, to measure what it takes beside time
 */
export function runLifecycle(
  measured: Measured,
  writers: readonly Writer[],
  around: (name: keyof Lifecycle, step: () => Promise<number>) => Promise<number> = (_, step) => step(),
): Promise<Lifecycle> {
  const { client } = measured.cluster;
  const change = ({ name, namespace }: Writer) =>
    client.mergePatch(WRITER, name, namespace, { spec: { age: CHANGED_AGE } });
  return lifecycleOf(measured.cluster, writers.length, {
    created: () => around("created", () => createWriters(measured, writers)),
    changed: () => around("changed", () => atOnce(measured, writers, "changed", isChanged, change)),
    deleted: () => around("deleted", () => deleteWriters(measured, writers)),
  });
}

/** Takes the steps in their order, and counts the rows after each. */
export async function lifecycleOf(
  cluster: BenchCluster,
  count: number,
  steps: Record<keyof Lifecycle, () => Promise<number>>,
): Promise<Lifecycle> {
  const created = await steps.created();
  await expectRows(cluster, count, "true");
  const changed = await steps.changed();
  await expectRows(cluster, count, `age = ${CHANGED_AGE}`);
  const deleted = await steps.deleted();
  await expectRows(cluster, 0, "true");
  return { created, changed, deleted };
}

/**
 * Does something to each of the objects; ends when the watch has seen all as they should be then.
 *
 * @returns milliseconds
 */
export async function atOnce<T extends { name?: string; namespace?: string }>(
  { context: { detail }, watch }: Measured,
  objects: readonly T[],
  what: string,
  isDone: Parameters<ObjectWatch["until"]>[1],
  work: (object: T) => Promise<unknown>,
): Promise<number> {
  const all = watch.until(objects.map(objectKey), isDone, (done) => detail(`${done} of ${objects.length} ${what}`));
  all.catch(() => {}); // the work may fail first
  const started = performance.now();
  await forEachAtOnce(objects, work);
  return (await all).last - started;
}

/** @throws Error when there are more, or fewer */
async function expectRows(cluster: BenchCluster, count: number, condition: string): Promise<void> {
  const found = await cluster.queryNumber(`select count(*) as number from students where ${condition}`);
  if (found !== count) throw new Error(`there are ${found} rows where ${condition}, not ${count}`);
}

function isChanged(object: Parameters<typeof isReady>[0]): boolean {
  return isReady(object) && (object?.spec as { age?: number } | undefined)?.age === CHANGED_AGE;
}

const RESTART_TIMEOUT_MS = 120_000;

/** Stops the operator, and sees what the next one does with objects as its predecessor has left them. */
export async function restart(
  { context: { signal, detail }, cluster, operator }: Measured,
  objects: number,
): Promise<Figure[]> {
  detail("restart");
  await operator.stop();
  const started = performance.now();
  const next = await cluster.startOperator();
  try {
    while ((await next.counted("controller_runtime_reconcile_total")) < objects) {
      if (performance.now() - started > RESTART_TIMEOUT_MS) {
        throw new Error("not all objects were looked at after the restart");
      }
      await delay(50, undefined, { signal });
    }
    const lookedAtMs = performance.now() - started;
    const updates = await next.counted("kindstack_updates_total");
    return [
      { what: `restart with ${objects}: until it is ready`, ...seconds(next.readyAfterMs) },
      { what: `restart with ${objects}: until all have been looked at`, ...seconds(lookedAtMs) },
      { what: `restart with ${objects}: updates run`, value: updates, unit: "count", mark: atMost(0) },
    ];
  } finally {
    await next.stop();
  }
}
