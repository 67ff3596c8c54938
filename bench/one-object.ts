import { execa } from "execa";
import { type BareCli, withBareCli } from "./bare-cli";
import { type BenchCluster, type BenchContext, withBenchCluster } from "./cluster";
import { isGone, isReady, ObjectWatch } from "./object-watch";
import { GO_OPERATOR } from "./peers";
import { type Figure, type Section, summary } from "./results";
import { CHANGED_AGE, keyOf, type Writer, writerManifest, writersOf, writersProgram, writerType } from "./writers";

const ROUNDS = 10;
const QUICK_ROUNDS = 2;

/** Milliseconds of one round. */
type Life = Record<"created" | "changed" | "deleted", number>;

/** One PostgresWriter, through the operator and through the bare CLI, in turns: what a user waits for, and the least it can be. */
export async function oneObject(context: BenchContext): Promise<Section> {
  const rounds = context.quick ? QUICK_ROUNDS : ROUNDS;
  return withBenchCluster(context, async (cluster) => {
    const operator = await cluster.startOperator();
    const watch = await ObjectWatch.open(cluster.client, await writerType(cluster.client), context.signal);
    try {
      return await withBareCli(context, cluster, async (bare) => {
        const lives: { operator: Life; bare: Life }[] = [];
        for (let round = -1; round < rounds; round++) {
          context.detail(`round ${round + 1} of ${rounds}`);
          const [writer, alone] = [writersOf("default", 1), writersOf("bare", 1)].flat() as [Writer, Writer];
          const life = {
            operator: await throughOperator(context, cluster, watch, { ...writer, name: `writer-${round + 1}` }),
            bare: await throughCli(cluster, bare, alone),
          };
          if (round >= 0) lives.push(life); // before, connections are opened and compilers do their work
        }
        await operator.stop();
        return {
          id: "one-object",
          title: "One PostgresWriter",
          notes: [
            `${rounds} rounds in turns; the median, with the least and the most.`,
            "Through the operator: from the start of kubectl until the object is Ready and its row is as it should be, or until the object and the row are gone.",
            "The bare CLI: one process with the same program and providers, on a stack of its own.",
          ],
          figures: [
            {
              ...figureOf("kubectl create → Ready", "created", lives),
              mark: { of: "ratio", at: "most", limit: 1.25 },
            },
            {
              ...figureOf("the same", "created", lives),
              against: { what: GO_OPERATOR, value: 0.4, range: [0.3, 0.4], measured: "elsewhere" },
            },
            figureOf("kubectl patch → Ready again", "changed", lives),
            figureOf("kubectl delete → gone", "deleted", lives),
          ],
        };
      });
    } finally {
      watch.close();
    }
  });
}

async function throughOperator(
  { signal }: BenchContext,
  cluster: BenchCluster,
  watch: ObjectWatch,
  writer: Writer,
): Promise<Life> {
  const key = keyOf(writer);
  const kubectl = (args: string[], input = "") =>
    execa("kubectl", [...args, "--namespace", writer.namespace], { input, env: cluster.dev.env, cancelSignal: signal });
  const timed = async (isDone: Parameters<ObjectWatch["until"]>[1], act: () => Promise<unknown>) => {
    const started = performance.now();
    await act();
    await watch.until([key], isDone);
    return performance.now() - started;
  };
  const rows = (condition: string) =>
    cluster.queryNumber(`select count(*) as number from students where id = $1 and ${condition}`, [key]);
  const expect = async (count: number, condition: string) => {
    if ((await rows(condition)) !== count) throw new Error(`${key}: not ${count} rows where ${condition}`);
  };
  const patch = ["--type", "merge", "--patch", JSON.stringify({ spec: { age: CHANGED_AGE } })];

  const created = await timed(isReady, () => kubectl(["create", "-f", "-"], JSON.stringify(writerManifest(writer))));
  await expect(1, "true");
  const changed = await timed(
    (object) => isReady(object) && object?.metadata.generation !== 1,
    () => kubectl(["patch", "postgreswriter", writer.name, ...patch]),
  );
  await expect(1, `age = ${CHANGED_AGE}`);
  const deleted = await timed(isGone, () => kubectl(["delete", "postgreswriter", writer.name]));
  await expect(0, "true");
  return { created, changed, deleted };
}

async function throughCli(cluster: BenchCluster, bare: BareCli, writer: Writer): Promise<Life> {
  const stack = "one-object";
  const created = await bare.up(stack, writersProgram([writer]));
  const changed = await bare.up(stack, writersProgram([writer], CHANGED_AGE));
  const rows = await cluster.queryNumber("select age as number from students where id = $1", [keyOf(writer)]);
  if (rows !== CHANGED_AGE) throw new Error("the bare update has not changed the row");
  return { created, changed, deleted: await bare.destroy(stack) };
}

function figureOf(what: string, name: keyof Life, lives: readonly { operator: Life; bare: Life }[]): Figure {
  return {
    what,
    unit: "s",
    ...summary(lives.map(({ operator }) => operator[name] / 1000)),
    against: {
      what: "one bare CLI update",
      ...summary(lives.map(({ bare }) => bare[name] / 1000)),
      measured: "here",
    },
  };
}
