import { availableParallelism } from "node:os";
import { withBareCli } from "./bare-cli";
import { type BurstSize, burstSection } from "./burst-figures";
import { type BenchCluster, type BenchContext, withBenchCluster } from "./cluster";
import { expectRows, type Lifecycle, runLifecycle, type Step, warmUp, withOperator } from "./lifecycle";
import { ObjectWatch } from "./object-watch";
import { plainLife } from "./plain-up";
import { memoryMiB, sampleTree } from "./processes";
import type { Section } from "./results";
import { measureStock } from "./stock";
import { WITHOUT_SERVER } from "./without-server";
import { CHANGED_AGE, writersOf, writersProgram, writerType } from "./writers";

const FULL: BurstSize = { objects: 1_000, namespaces: 50, stock: 12 };
const QUICK: BurstSize = { objects: 100, namespaces: 10, stock: 2 };
/** The objects of all namespaces fill the same stacks. */
const ONE_PARTITION = { KINDSTACK_STACK_PARTITIONS: "1" };

/** Many PostgresWriters at once: made, changed, deleted. */
export async function burst(context: BenchContext): Promise<Section> {
  const size = context.quick ? QUICK : FULL;
  return withBenchCluster(context, async (cluster) => {
    const operator = await cluster.startOperator();
    const stopSampling = sampleTree(operator.pid);
    const watch = await ObjectWatch.open(cluster.client, await writerType(cluster.client), context.signal);
    try {
      await warmUp(cluster, watch, warmUpSize(size.objects));
      const measured = { context, cluster, operator, watch };
      const one = await runLifecycle(measured, writersOf("one", size.objects));
      const many = await runLifecycle(measured, writersOf("many", size.objects, size.namespaces));
      const peakMiB = await memoryMiB(operator.pid, "peak");
      const { peakMiB: treePeakMiB } = await stopSampling();
      await operator.stop();
      const shared = await otherLife(context, cluster, size, "shared", ONE_PARTITION);
      // With stacks of its own for each namespace: there are most updates.
      const withoutServer = await otherLife(context, cluster, size, "without-server", WITHOUT_SERVER);
      const bare = await bareLifecycle(context, cluster, size.objects);
      const plain = await plainLife(context, cluster, writersOf("plain", size.objects));
      const stock = await measureStock(context, cluster, writersOf("stock", size.stock), availableParallelism());
      return burstSection({ size, one, many, shared, withoutServer, plain, bare, stock, peakMiB, treePeakMiB });
    } finally {
      await stopSampling();
      watch.close();
    }
  });
}

/** Over the namespaces, with another setting of the operator's. */
function otherLife(
  context: BenchContext,
  cluster: BenchCluster,
  { objects, namespaces }: BurstSize,
  name: string,
  environment: Readonly<Record<string, string>>,
): Promise<Lifecycle> {
  return withOperator(
    context,
    cluster,
    () => cluster.startOperator(environment),
    async (measured) => {
      await warmUp(cluster, measured.watch, warmUpSize(objects));
      return runLifecycle(measured, writersOf(name, objects, namespaces));
    },
  );
}

async function bareLifecycle(context: BenchContext, cluster: BenchCluster, count: number): Promise<Lifecycle> {
  const writers = writersOf("bare", count);
  const some = writersOf("warm-up", warmUpSize(count));
  const stack = "burst";
  return withBareCli(context, cluster, async (bare) => {
    await bare.up(stack, writersProgram(some), { many: true }); // as the operator has been warmed up
    await bare.destroy(stack, { many: true });
    const timed = async (what: string, update: () => Promise<number>): Promise<Step> => {
      context.detail(`one bare update of ${count}: ${what}`);
      const before = await bare.cliProcesses();
      const ms = await update();
      return { ms, cliProcesses: (await bare.cliProcesses()) - before };
    };
    const many = true;
    const created = await timed("created", () => bare.up(stack, writersProgram(writers), { many }));
    await expectRows(cluster, count, "true");
    const changed = await timed("changed", () => bare.up(stack, writersProgram(writers, CHANGED_AGE), { many }));
    await expectRows(cluster, count, `age = ${CHANGED_AGE}`);
    const deleted = await timed("deleted", () => bare.destroy(stack, { many }));
    await expectRows(cluster, 0, "true");
    return { created, changed, deleted };
  });
}

/** What the operator and the bare update are warmed up with: both are the same code, and a compiler works meanwhile. */
function warmUpSize(objects: number): number {
  return Math.ceil(objects / 2);
}
