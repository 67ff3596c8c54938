import { setTimeout as delay } from "node:timers/promises";
import { type BenchContext, withBenchCluster } from "./cluster";
import { isReady, ObjectWatch } from "./object-watch";
import { cpuSeconds, memoryMiB, sampleTree } from "./processes";
import { restart } from "./restart";
import type { Section } from "./results";
import { createNamespaces, forEachAtOnce, keyOf, writerManifest, writersOf, writerType } from "./writers";

const FULL = { objects: 1_000, observeSeconds: 60 };
const QUICK = { objects: 50, observeSeconds: 10 };

/** What an operator costs that has nothing to do, and what a new one does with objects that have not changed. */
export async function idle(context: BenchContext): Promise<Section> {
  const { objects, observeSeconds } = context.quick ? QUICK : FULL;
  return withBenchCluster(context, async (cluster) => {
    const { client } = cluster;
    const operator = await cluster.startOperator();
    const type = await writerType(client);
    const watch = await ObjectWatch.open(client, type, context.signal);
    const writers = writersOf("idle", objects);
    try {
      await createNamespaces(client, writers);
      await forEachAtOnce(writers, (writer) => client.create(writerManifest(writer)));
      await watch.until(writers.map(keyOf), isReady, (done) => context.detail(`${done} of ${objects} Ready`));
    } finally {
      watch.close();
    }
    const pass = () => delay(observeSeconds * 1000, undefined, { signal: context.signal });
    const cpuPercentDuring = async (time: Promise<unknown>) => {
      const [before, started] = [await cpuSeconds(operator.pid), performance.now()];
      await time;
      const used = (await cpuSeconds(operator.pid)).own - before.own;
      return (used / ((performance.now() - started) / 1000)) * 100;
    };
    context.detail("coming to rest");
    const afterwardsPercent = await cpuPercentDuring(pass());

    context.detail("nothing to do");
    const [requests, started] = [await cluster.operatorRequests(), performance.now()];
    const stopSampling = sampleTree(operator.pid);
    const percent = await cpuPercentDuring(pass().finally(stopSampling));
    const { descendants } = await stopSampling();
    const seconds = (performance.now() - started) / 1000;
    const asked = (await cluster.operatorRequests()) - requests;
    const residentMiB = await memoryMiB(operator.pid, "now");

    context.detail("restart");
    const again = await restart(context, cluster, operator, objects);
    await again.operator.stop();
    return {
      id: "idle",
      title: `The operator at rest with ${objects} PostgresWriters`,
      notes: [
        `Watched for ${observeSeconds} s from ${observeSeconds} s after the last object is Ready, until when the last Events are written and memory is given back. Meanwhile all rows are compared with their objects every 30 s.`,
        "Requests are those that the API server counts for the operator's own user: every minute what admission needs is applied again, every few minutes a watch is renewed.",
      ],
      figures: [
        {
          what: "child processes, at most",
          value: descendants,
          unit: "count",
          mark: { of: "value", at: "most", limit: 0 },
        },
        {
          what: "CPU, of one core",
          value: percent,
          unit: "%",
          mark: { of: "value", at: "most", limit: 1 },
        },
        {
          what: `CPU in the ${observeSeconds} s before, since the last object is Ready`,
          value: afterwardsPercent,
          unit: "%",
        },
        { what: "resident memory", value: residentMiB, unit: "MiB", mark: { of: "value", at: "most", limit: 130 } },
        { what: "requests to the API server", value: asked / seconds, unit: "/s" },
        { what: "restart: from the start of the process until it is ready", value: again.readyMs / 1000, unit: "s" },
        { what: "restart: until all objects have been looked at", value: again.lookedAtMs / 1000, unit: "s" },
        {
          what: "restart: updates run",
          value: again.updates,
          unit: "count",
          mark: { of: "value", at: "most", limit: 0 },
        },
        { what: "restart: CLI processes", value: again.cliProcesses, unit: "count" },
      ],
    };
  });
}
