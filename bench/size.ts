import { setTimeout as delay } from "node:timers/promises";
import { type BenchCluster, type BenchContext, withBenchCluster } from "./cluster";
import { fitPower } from "./fit";
import { isGone, isReady, ObjectWatch } from "./object-watch";
import { folderBytes, type OperatorProcess } from "./operator-process";
import { cpuSeconds, memoryMiB } from "./processes";
import { restart } from "./restart";
import type { Figure, Section, SizePoint } from "./results";
import { createNamespaces, forEachAtOnce, keyOf, type Writer, writerManifest, writersOf, writerType } from "./writers";

const SIZES = [10, 100, 1_000, 5_000];
const QUICK_SIZES = [10, 50, 100];
const SETTLE_MS = 5_000;

/** What objects cost by their number: each size in a namespace of its own, through an operator that has just started. */
export async function size(context: BenchContext): Promise<Section> {
  const counts = context.quick ? QUICK_SIZES : SIZES;
  return withBenchCluster(context, async (cluster) => {
    const sizes: SizePoint[] = [];
    let restarted: Awaited<ReturnType<typeof restart>> | undefined;
    for (const count of counts) {
      const operator = await cluster.startOperator();
      const writers = writersOf(`size-${count}`, count);
      sizes.push(await measureSize(context, cluster, operator, writers));
      if (count === counts.at(-1)) restarted = await restart(context, cluster, operator, count);
      else await removeAll(context, cluster, writers);
      await (restarted?.operator ?? operator).stop();
    }
    return {
      id: "size",
      title: "Cost against size",
      notes: [
        "PostgresWriters of one namespace, created with 32 requests at a time; the time runs from the first request until the last is Ready.",
        "CPU time is the operator's and its CLI processes'. The exponent is fitted by least squares of the logarithms; the fixed cost of the first update makes it look better, so that of the last step is beside it.",
      ],
      figures: [...figuresOf(sizes), ...(restarted === undefined ? [] : restartFigures(counts.at(-1) ?? 0, restarted))],
      sizes,
    };
  });
}

async function measureSize(
  { signal, detail }: BenchContext,
  cluster: BenchCluster,
  operator: OperatorProcess,
  writers: readonly Writer[],
): Promise<SizePoint> {
  const { client } = cluster;
  const type = await writerType(client);
  await createNamespaces(client, writers);
  const before = { cpu: await cpuSeconds(operator.pid), requests: await cluster.operatorRequests() };
  const stateBefore = await folderBytes(cluster.stateDirectory);
  const watch = await ObjectWatch.open(client, type, signal);
  try {
    const keys = writers.map(keyOf);
    const ready = watch.until(keys, isReady, (done) => detail(`${done} of ${writers.length} Ready`));
    ready.catch(() => {}); // the creation may fail first
    const started = performance.now();
    await forEachAtOnce(writers, (writer) => client.create(writerManifest(writer)));
    const { last } = await ready;
    const bytes = keys.map((key) => Buffer.byteLength(JSON.stringify(watch.get(key))));
    await delay(SETTLE_MS, undefined, { signal });
    const cpu = await cpuSeconds(operator.pid);
    return {
      objects: writers.length,
      seconds: (last - started) / 1000,
      cpuSeconds: cpu.own + cpu.children - before.cpu.own - before.cpu.children,
      residentMiB: await memoryMiB(operator.pid, "now"),
      stateBytes: (await folderBytes(cluster.stateDirectory)) - stateBefore,
      objectBytes: bytes.reduce((sum, size) => sum + size, 0),
      requests: (await cluster.operatorRequests()) - before.requests,
      processes: await operator.cliProcesses(),
    };
  } finally {
    watch.close();
  }
}

async function removeAll(
  { signal }: BenchContext,
  { client }: BenchCluster,
  writers: readonly Writer[],
): Promise<void> {
  const type = await writerType(client);
  const watch = await ObjectWatch.open(client, type, signal);
  try {
    await forEachAtOnce(writers, ({ name, namespace }) => client.delete(type, name, namespace));
    await watch.until(writers.map(keyOf), isGone);
  } finally {
    watch.close();
  }
}

function figuresOf(sizes: readonly SizePoint[]): Figure[] {
  const exponent = (what: string, points: readonly SizePoint[], of: "seconds" | "cpuSeconds"): Figure => ({
    what,
    value: fitPower(points.map((point) => ({ x: point.objects, y: point[of] }))).exponent,
    unit: "exponent",
    mark: { of: "value", at: "most", limit: 1.1 },
  });
  return [
    ...sizes.map(({ objects, seconds }): Figure => ({ what: `${objects} created`, value: seconds, unit: "s" })),
    exponent("exponent of the time", sizes, "seconds"),
    exponent("exponent of the time, last step", sizes.slice(-2), "seconds"),
    exponent("exponent of the CPU time", sizes, "cpuSeconds"),
    exponent("exponent of the CPU time, last step", sizes.slice(-2), "cpuSeconds"),
  ];
}

function restartFigures(
  objects: number,
  { readyMs, lookedAtMs, updates }: Awaited<ReturnType<typeof restart>>,
): Figure[] {
  return [
    { what: `restart with ${objects}: until it is ready`, value: readyMs / 1000, unit: "s" },
    { what: `restart with ${objects}: until all have been looked at`, value: lookedAtMs / 1000, unit: "s" },
    {
      what: `restart with ${objects}: updates run`,
      value: updates,
      unit: "count",
      mark: { of: "value", at: "most", limit: 0 },
    },
  ];
}
