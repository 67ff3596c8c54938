import { setTimeout as delay } from "node:timers/promises";
import { type BenchContext, withBenchCluster } from "./cluster";
import { createWriters, deleteWriters, withOperator } from "./lifecycle";
import { cpuSeconds, memoryMiB } from "./processes";
import { atMost, beside, type Figure, type Section } from "./results";
import { writersOf } from "./writers";

const FULL = { objects: 1_000, restSeconds: 30 };
const QUICK = { objects: 50, restSeconds: 5 };

/** Loaded before the operator: V8's own heap, whatever the operator asks for, and no collection that V8 does not begin. */
const PLAIN_HEAP = `data:text/javascript,${encodeURIComponent(
  `import v8 from "node:v8"; import vm from "node:vm";
const { setFlagsFromString } = v8; const { runInNewContext } = vm;
v8.setFlagsFromString = (flag) => { if (flag === "--expose-gc") setFlagsFromString(flag); };
vm.runInNewContext = (code, ...rest) => code === "gc" ? () => {} : runInNewContext(code, ...rest);`,
)}`;

/** What the operator's settings of V8's heap are worth. */
export async function heap(context: BenchContext): Promise<Section> {
  const { objects, restSeconds } = context.quick ? QUICK : FULL;
  const writers = writersOf("heap", objects);
  return withBenchCluster(context, async (cluster) => {
    const measure = (environment: Record<string, string>) =>
      withOperator(
        context,
        cluster,
        () => cluster.startOperator(environment),
        async (measured) => {
          const { pid } = measured.operator;
          await createWriters(measured, writers);
          context.detail("coming to rest");
          await delay(restSeconds * 1000, undefined, { signal: context.signal });
          const atRestMiB = await memoryMiB(pid, "now");
          await deleteWriters(measured, writers);
          return { atRestMiB, peakMiB: await memoryMiB(pid, "peak"), cpuSeconds: (await cpuSeconds(pid)).own };
        },
      );
    const [own, plain] = [await measure({}), await measure({ NODE_OPTIONS: `--import ${PLAIN_HEAP}` })];
    const figure = (what: string, unit: Figure["unit"], of: keyof typeof own, limit: number): Figure => {
      const against = beside("V8's own settings", { value: plain[of] });
      return { what, unit, value: own[of], against, mark: atMost(limit, "ratio") };
    };
    return {
      id: "heap",
      title: `The operator's settings of its heap, beside V8's own, with ${objects} PostgresWriters`,
      notes: [
        `Each operator creates all at once, rests for ${restSeconds} s, and deletes them.`,
        "The settings are in src/cli/heap.ts: slower growth, a smaller young generation, and a collection once the operator is idle.",
      ],
      figures: [
        figure("memory at rest", "MiB", "atRestMiB", 0.8),
        figure("peak memory", "MiB", "peakMiB", 0.9),
        figure("CPU time", "s", "cpuSeconds", 1.05),
      ],
    };
  });
}
