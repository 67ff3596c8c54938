import { setTimeout as delay } from "node:timers/promises";
import type { LiveObject } from "../providers/kubernetes/client";
import { findCondition } from "../stacks/contract/condition";
import { statusOf } from "../stacks/contract/kind";
import { objectKey } from "../stacks/contract/object";
import { type BenchContext, withBenchCluster } from "./cluster";
import { atOnce, withOperator } from "./lifecycle";
import { isReady } from "./object-watch";
import { treeCpuSeconds } from "./processes";
import { atMost, type Section, seconds } from "./results";
import { createNamespaces, writerManifest, writersOf } from "./writers";

const FULL = { objects: 300, observeSeconds: 60 };
const QUICK = { objects: 20, observeSeconds: 10 };

/** What objects cost whose table is missing, and how soon they are Ready when it is there. */
export async function outage(context: BenchContext): Promise<Section> {
  const { objects, observeSeconds } = context.quick ? QUICK : FULL;
  const { detail, signal } = context;
  const writers = writersOf("outage", objects);
  return withBenchCluster(context, (cluster) =>
    withOperator(context, cluster, cluster.startOperator, async (measured) => {
      const { operator, watch } = measured;
      await createNamespaces(cluster.client, writers);
      await cluster.queryNumber("ALTER TABLE students RENAME TO students_aside");
      await atOnce(measured, writers, "failed", hasFailed, (writer) => cluster.client.create(writerManifest(writer)));

      detail("the first minute");
      const pass = () => delay(observeSeconds * 1000, undefined, { signal });
      await pass();
      detail("nothing but tries");
      const updates = () => operator.counted("kindstack_updates_total");
      const [cpuBefore, updatesBefore, started] = [
        await treeCpuSeconds(operator.pid),
        await updates(),
        performance.now(),
      ];
      await pass();
      const used = (await treeCpuSeconds(operator.pid)) - cpuBefore;
      const elapsed = (performance.now() - started) / 1000;
      const tries = (await updates()) - updatesBefore;

      const ready = watch.until(writers.map(objectKey), isReady, (done) => detail(`${done} of ${objects} Ready`));
      ready.catch(() => {});
      const back = performance.now();
      await cluster.queryNumber("ALTER TABLE students_aside RENAME TO students");
      const { last } = await ready;
      return {
        id: "outage",
        title: `${objects} PostgresWriters whose table is missing`,
        notes: [
          `The CPU time is that of the operator and its engine, for ${observeSeconds} s from ${observeSeconds} s after the last object has failed.`,
        ],
        figures: [
          { what: "CPU, of one core", value: (used / elapsed) * 100, unit: "%", mark: atMost(2) },
          { what: "updates tried meanwhile", value: tries, unit: "count" },
          { what: "table created → all Ready", ...seconds(last - back), mark: atMost(30) },
        ],
      };
    }),
  );
}

function hasFailed(object: LiveObject | undefined): boolean {
  return object !== undefined && findCondition(statusOf(object).conditions, "Ready")?.status === "False";
}
