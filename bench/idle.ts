import { setTimeout as delay } from "node:timers/promises";
import { type BenchContext, withBenchCluster } from "./cluster";
import { createWriters, restart, withOperator } from "./lifecycle";
import { cpuSeconds, memoryMiB, sampleTree } from "./processes";
import { atMost, type Section } from "./results";
import { writersOf } from "./writers";

const FULL = { objects: 1_000, observeSeconds: 60 };
const QUICK = { objects: 50, observeSeconds: 10 };

/** What an operator costs that has nothing to do, and what a new one does with objects that have not changed. */
export async function idle(context: BenchContext): Promise<Section> {
  const { objects, observeSeconds } = context.quick ? QUICK : FULL;
  return withBenchCluster(context, (cluster) =>
    withOperator(context, cluster, cluster.startOperator, async (measured) => {
      const { pid } = measured.operator;
      await createWriters(measured, writersOf("idle", objects));
      const pass = () => delay(observeSeconds * 1000, undefined, { signal: context.signal });
      const cpuPercentDuring = async (time: Promise<unknown>) => {
        const [before, started] = [await cpuSeconds(pid), performance.now()];
        await time;
        const used = (await cpuSeconds(pid)).own - before.own;
        return (used / ((performance.now() - started) / 1000)) * 100;
      };
      context.detail("coming to rest");
      const afterwardsPercent = await cpuPercentDuring(pass());

      context.detail("nothing to do");
      const [requests, started] = [await cluster.operatorRequests(), performance.now()];
      const stopSampling = sampleTree(pid);
      const percent = await cpuPercentDuring(pass().finally(stopSampling));
      const { descendants } = await stopSampling();
      const elapsed = (performance.now() - started) / 1000;
      const asked = (await cluster.operatorRequests()) - requests;
      const residentMiB = await memoryMiB(pid, "now");
      return {
        id: "idle",
        title: `The operator at rest with ${objects} PostgresWriters`,
        notes: [
          `Watched for ${observeSeconds} s from ${observeSeconds} s after the last object is Ready, until when the last Events are written and memory is given back. Meanwhile all rows are compared with their objects every 30 s.`,
          "Requests are those that the API server counts for the operator's own user: every minute what admission needs is applied again, every few minutes a watch is renewed.",
        ],
        figures: [
          { what: "child processes, at most", value: descendants, unit: "count", mark: atMost(0) },
          { what: "CPU, of one core", value: percent, unit: "%", mark: atMost(1) },
          {
            what: `CPU in the ${observeSeconds} s before, since the last object is Ready`,
            value: afterwardsPercent,
            unit: "%",
          },
          { what: "resident memory", value: residentMiB, unit: "MiB", mark: atMost(128) },
          { what: "requests to the API server", value: asked / elapsed, unit: "/s" },
          ...(await restart(measured, objects)),
        ],
      };
    }),
  );
}
