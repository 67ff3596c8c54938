import fs from "node:fs/promises";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { type BenchContext, withBenchCluster } from "./cluster";
import { createWriters, deleteWriters, type Measured, restart, withOperator } from "./lifecycle";
import { cpuSeconds, memoryMiB, sampleTree } from "./processes";
import { atMost, type Figure, fitPower, type Section, type SizePoint } from "./results";
import { keyOf, type Writer, writersOf } from "./writers";

const SIZES = [10, 100, 1_000, 5_000, 20_000];
const QUICK_SIZES = [10, 50, 100];
const SETTLE_MS = 5_000;

/** What objects cost by their number: each size in a namespace of its own, through an operator that has just started. */
export async function size(context: BenchContext): Promise<Section> {
  const counts = context.quick ? QUICK_SIZES : SIZES;
  return withBenchCluster(context, async (cluster) => {
    const sizes: SizePoint[] = [];
    const restarted: Figure[] = [];
    for (const count of counts) {
      await withOperator(context, cluster, cluster.startOperator, async (measured) => {
        const writers = writersOf(`size-${count}`, count);
        sizes.push(await measureSize(measured, writers));
        if (count === counts.at(-1)) restarted.push(...(await restart(measured, count)));
        else await deleteWriters(measured, writers);
      });
    }
    return {
      id: "size",
      title: "Cost against size",
      notes: [
        "PostgresWriters of one namespace, created with 32 requests at a time; the time runs from the first request until the last is Ready.",
        "CPU time is the operator's and the engine's. The exponent is fitted by least squares of the logarithms; the fixed cost of the first update makes it look better, so that of the last step is beside it.",
      ],
      figures: [...figuresOf(sizes), ...restarted],
      sizes,
    };
  });
}

async function measureSize(measured: Measured, writers: readonly Writer[]): Promise<SizePoint> {
  const { context, cluster, operator, watch } = measured;
  const before = { cpu: await cpuSeconds(operator.pid), requests: await cluster.operatorRequests() };
  const stateBefore = await folderBytes(cluster.stateDirectory);
  const stopSampling = sampleTree(operator.pid);
  const ms = await createWriters(measured, writers).finally(stopSampling);
  const bytes = writers.map((writer) => Buffer.byteLength(JSON.stringify(watch.get(keyOf(writer)))));
  await delay(SETTLE_MS, undefined, { signal: context.signal });
  const cpu = await cpuSeconds(operator.pid);
  return {
    objects: writers.length,
    seconds: ms / 1000,
    cpuSeconds: cpu.own + cpu.children - before.cpu.own - before.cpu.children,
    residentMiB: await memoryMiB(operator.pid, "now"),
    peakMiB: (await stopSampling()).peakMiB,
    stateBytes: (await folderBytes(cluster.stateDirectory)) - stateBefore,
    objectBytes: bytes.reduce((sum, size) => sum + size, 0),
    requests: (await cluster.operatorRequests()) - before.requests,
  };
}

function figuresOf(sizes: readonly SizePoint[]): Figure[] {
  const exponent = (what: string, points: readonly SizePoint[], of: "seconds" | "cpuSeconds"): Figure => ({
    what,
    value: fitPower(points.map((point) => ({ x: point.objects, y: point[of] }))).exponent,
    unit: "exponent",
    mark: atMost(1.05),
  });
  return [
    ...sizes.map((size): Figure => ({ what: `${size.objects} created`, value: size.seconds, unit: "s" })),
    ...sizes.slice(-2).flatMap(({ objects, peakMiB, residentMiB }): Figure[] => [
      {
        what: `${objects}: most memory of operator and engine`,
        value: peakMiB ?? Number.NaN,
        unit: "MiB",
        mark: atMost(500),
      },
      {
        what: `${objects}: memory of the operator at rest`,
        value: residentMiB,
        unit: "MiB",
        mark: atMost(objects >= 20_000 ? 202 : 142),
      },
    ]),
    exponent("exponent of the time", sizes, "seconds"),
    exponent("exponent of the time, last step", sizes.slice(-2), "seconds"),
    exponent("exponent of the CPU time", sizes, "cpuSeconds"),
    exponent("exponent of the CPU time, last step", sizes.slice(-2), "cpuSeconds"),
  ];
}

/** The bytes of all files below a folder. */
async function folderBytes(folder: string): Promise<number> {
  let bytes = 0;
  for (const entry of await fs.readdir(folder, { recursive: true, withFileTypes: true })) {
    if (entry.isFile()) bytes += (await fs.stat(path.join(entry.parentPath, entry.name))).size;
  }
  return bytes;
}
