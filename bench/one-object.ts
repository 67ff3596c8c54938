import { execa } from "execa";
import { type BareEngine, withBareEngine } from "./bare-engine";
import { type BenchCluster, type BenchContext, withBenchCluster } from "./cluster";
import { GO_OPERATOR } from "./go-operator";
import { type Measured, withOperator } from "./lifecycle";
import { isGone, isReady, type ObjectWatch } from "./object-watch";
import type { OperatorProcess } from "./operator-process";
import { atMost, beside, type Figure, type Section, seconds } from "./results";
import { CHANGED_AGE, keyOf, type Writer, writerManifest, writersProgram } from "./writers";

const ROUNDS = 10;
const QUICK_ROUNDS = 2;

/** Milliseconds of one round. */
type Times = Record<"created" | "changed" | "deleted", number>;

interface OperatorLifecycle extends Times {
  /** Of the creation: kubectl from its start to its end, all from when the object was there, and the update of the stack. */
  kubectl: number;
  sinceThere: number;
  update: number;
}

interface Round {
  operator: OperatorLifecycle;
  bare: Times;
}

/**
 * One PostgresWriter, through the operator and through the bare engine, alternately: what a user waits for, and the least it can
 * be; then by an operator in Go.
 */
export async function oneObject(context: BenchContext): Promise<Section> {
  const rounds = context.quick ? QUICK_ROUNDS : ROUNDS;
  return withBenchCluster(context, async (cluster) => {
    const roundsOf = <T>(
      what: string,
      start: () => Promise<OperatorProcess>,
      live: (measured: Measured, name: string) => Promise<T>,
    ): Promise<T[]> =>
      withOperator(context, cluster, start, async (measured) => {
        const lifecycles: T[] = [];
        for (let round = 0; round <= rounds; round++) {
          context.detail(`${what}: round ${round} of ${rounds}`);
          lifecycles.push(await live(measured, `${what}-${round}`));
        }
        return lifecycles.slice(1); // in the first, connections are opened and compilers do their work
      });

    const beside = await withBareEngine(context, cluster, (bare) =>
      roundsOf("kindstack", cluster.startOperator, async (measured, name) => ({
        operator: await throughOperator(measured, { namespace: "default", name }),
        bare: await throughEngine(cluster, bare, { namespace: "bare", name: "writer" }),
      })),
    );
    const go = await roundsOf("go", () => cluster.startGoOperator({ passOverOwnWrites: false }), inDefault);
    return oneObjectSection(rounds, beside, go);
  });
}

function inDefault(measured: Measured, name: string): Promise<OperatorLifecycle> {
  return throughOperator(measured, { namespace: "default", name });
}

function oneObjectSection(rounds: number, lifecycles: readonly Round[], go: readonly OperatorLifecycle[]): Section {
  const byGo = beside(GO_OPERATOR, seconds(go.map(({ created }) => created)));
  const through = lifecycles.map(({ operator }) => operator);
  return {
    id: "one-object",
    title: "One PostgresWriter",
    notes: [
      `${rounds} rounds, alternating with the bare engine, then of the operator in Go; the median, with the least and the most.`,
      "Through the operator: from the start of kubectl until the object is Ready and its row is as it should be, or until the object and the row are gone.",
      "The update may begin before kubectl has ended; what neither of them is, is the way of the event, the finalizer and the status.",
      "The bare engine: an update with the same program and providers, on a stack of its own, protected by a passphrase as the operator's is.",
    ],
    figures: [
      figureOf("kubectl create → Ready", "created", lifecycles),
      { ...figureOf("the same", "created", lifecycles), against: byGo, mark: atMost(1.25, "ratio") },
      partOf("kubectl alone", "kubectl", through),
      figureOf("from the object's creation until it is Ready", "created", lifecycles, "sinceThere"),
      partOf("the update alone", "update", through),
      figureOf("kubectl patch → Ready again", "changed", lifecycles),
      figureOf("kubectl delete → gone", "deleted", lifecycles),
    ],
  };
}

async function throughOperator(
  { context: { signal }, cluster, operator, watch }: Measured,
  writer: Writer,
): Promise<OperatorLifecycle> {
  const key = keyOf(writer);
  const kubectl = async (args: string[], input = "") => {
    const started = performance.now();
    await execa("kubectl", [...args, "--namespace", writer.namespace], {
      input,
      env: cluster.dev.env,
      cancelSignal: signal,
    });
    return performance.now() - started;
  };
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

  const updateSeconds = () => operator.counted("kindstack_update_duration_seconds_sum");
  const before = await updateSeconds();
  let kubectlMs = 0;
  const [created, { first: there }, { last: ready }] = await Promise.all([
    timed(isReady, async () => {
      kubectlMs = await kubectl(["create", "-f", "-"], JSON.stringify(writerManifest(writer)));
    }),
    watch.until([key], (object) => object !== undefined),
    watch.until([key], isReady),
  ]);
  const update = ((await updateSeconds()) - before) * 1000;
  await expect(1, "true");
  const changed = await timed(
    (object) => isReady(object) && object?.metadata.generation !== 1,
    () => kubectl(["patch", "postgreswriter", writer.name, ...patch]),
  );
  await expect(1, `age = ${CHANGED_AGE}`);
  const deleted = await timed(isGone, () => kubectl(["delete", "postgreswriter", writer.name]));
  await expect(0, "true");
  return { created, changed, deleted, kubectl: kubectlMs, sinceThere: ready - there, update };
}

async function throughEngine(cluster: BenchCluster, bare: BareEngine, writer: Writer): Promise<Times> {
  const stack = "one-object";
  const created = await bare.up(stack, writersProgram([writer]));
  const changed = await bare.up(stack, writersProgram([writer], CHANGED_AGE));
  const rows = await cluster.queryNumber("select age as number from students where id = $1", [keyOf(writer)]);
  if (rows !== CHANGED_AGE) throw new Error("the bare update has not changed the row");
  return { created, changed, deleted: await bare.destroy(stack) };
}

function figureOf(
  what: string,
  name: keyof Times,
  lifecycles: readonly Round[],
  part: keyof OperatorLifecycle = name,
): Figure {
  const bare = seconds(lifecycles.map((round) => round.bare[name]));
  return {
    ...partOf(
      what,
      part,
      lifecycles.map(({ operator }) => operator),
    ),
    against: beside("one bare update", bare),
  };
}

/** One time of all rounds. */
function partOf(what: string, name: keyof OperatorLifecycle, lifecycles: readonly OperatorLifecycle[]): Figure {
  return { what, ...seconds(lifecycles.map((lifecycle) => lifecycle[name])) };
}
