import { availableParallelism } from "node:os";
import { withBareEngine } from "./bare-engine";
import { type BurstSize, burstSection } from "./burst-figures";
import { type BenchCluster, type BenchContext, withBenchCluster } from "./cluster";
import { type Lifecycle, lifecycleOf, runLifecycle, warmUp, withOperator } from "./lifecycle";
import { plainLife } from "./plain-up";
import { memoryMiB, sampleTree } from "./processes";
import type { Section } from "./results";
import { measureStock } from "./stock";
import { CHANGED_AGE, type Writer, writersOf, writersProgram } from "./writers";

const FULL: BurstSize = { objects: 1_000, namespaces: 50, stock: 12 };
const QUICK: BurstSize = { objects: 100, namespaces: 10, stock: 2 };

/** Many PostgresWriters at once: made, changed, deleted. */
export async function burst(context: BenchContext): Promise<Section> {
  const size = context.quick ? QUICK : FULL;
  const { objects, namespaces } = size;
  return withBenchCluster(context, async (cluster) => {
    const own = await withOperator(context, cluster, cluster.startOperator, async (measured) => {
      const stopSampling = sampleTree(measured.operator.pid);
      try {
        await warmUp(measured, warmUpWriters(objects));
        const one = await runLifecycle(measured, writersOf("one", objects));
        const many = await runLifecycle(measured, writersOf("many", objects, namespaces));
        const peakMiB = await memoryMiB(measured.operator.pid, "peak");
        return { one, many, peakMiB, treePeakMiB: (await stopSampling()).peakMiB };
      } finally {
        await stopSampling();
      }
    });
    return burstSection({
      size,
      ...own,
      bare: await bareLifecycle(context, cluster, objects),
      plain: await plainLife(context, cluster, writersOf("plain", objects)),
      stockMs: await measureStock(context, cluster, writersOf("stock", size.stock), availableParallelism()),
    });
  });
}

async function bareLifecycle(context: BenchContext, cluster: BenchCluster, count: number): Promise<Lifecycle> {
  const writers = writersOf("bare", count);
  const stack = "burst";
  return withBareEngine(context, cluster, async (bare) => {
    await bare.up(stack, writersProgram(warmUpWriters(count))); // as the operator has been warmed up
    await bare.destroy(stack);
    const step = (what: string, update: () => Promise<number>) => () => {
      context.detail(`one bare update of ${count}: ${what}`);
      return update();
    };
    return lifecycleOf(cluster, count, {
      created: step("created", () => bare.up(stack, writersProgram(writers))),
      changed: step("changed", () => bare.up(stack, writersProgram(writers, CHANGED_AGE))),
      deleted: step("deleted", () => bare.destroy(stack)),
    });
  });
}

/** What the operator and the bare update are warmed up with: both are the same code, and a compiler works meanwhile. */
function warmUpWriters(objects: number): Writer[] {
  return writersOf("default", Math.ceil(objects / 2));
}
