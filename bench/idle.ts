import { setTimeout as delay } from "node:timers/promises";
import { type BenchContext, withBenchCluster } from "./cluster";
import { isReady, ObjectWatch } from "./object-watch";
import { cpuSeconds, memoryMiB, sampleTree } from "./processes";
import { restart } from "./restart";
import type { Section } from "./results";
import { createNamespaces, forEachAtOnce, keyOf, writerManifest, writersOf, writerType } from "./writers";

const FULL = { objects: 1_000, observeSeconds: 60 };
const QUICK = { objects: 50, observeSeconds: 10 };
/** What follows from the last update is over after that. */
const SETTLE_MS = 5_000;

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
      await forEachAtOnce(writers, (writer) => client.create(type, writerManifest(writer)));
      await watch.until(writers.map(keyOf), isReady, (done) => context.detail(`${done} of ${objects} Ready`));
    } finally {
      watch.close();
    }
    await delay(SETTLE_MS, undefined, { signal: context.signal });

    context.detail("nothing to do");
    const [requests, cpu, started] = [
      await cluster.operatorRequests(),
      await cpuSeconds(operator.pid),
      performance.now(),
    ];
    const stopSampling = sampleTree(operator.pid);
    await delay(observeSeconds * 1000, undefined, { signal: context.signal }).finally(stopSampling);
    const { descendants } = await stopSampling();
    const seconds = (performance.now() - started) / 1000;
    const used = (await cpuSeconds(operator.pid)).own - cpu.own;
    const asked = (await cluster.operatorRequests()) - requests;
    const residentMiB = await memoryMiB(operator.pid, "now");

    context.detail("restart");
    const again = await restart(context, cluster, operator, objects);
    await again.operator.stop();
    return {
      id: "idle",
      title: `The operator at rest with ${objects} PostgresWriters`,
      notes: [
        `Watched for ${observeSeconds} s, in which all rows are compared with their objects every 30 s.`,
        "Requests are those that the API server counts for the operator's own user; the renewal of a watch is one.",
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
          value: (used / seconds) * 100,
          unit: "%",
          mark: { of: "value", at: "most", limit: 1 },
        },
        { what: "resident memory", value: residentMiB, unit: "MiB", mark: { of: "value", at: "most", limit: 250 } },
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
