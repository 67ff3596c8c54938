import fs from "node:fs/promises";
import path from "node:path";
import { execa } from "execa";
import { type BenchCluster, type BenchContext, withBenchCluster } from "./cluster";
import { GO_OPERATOR } from "./go-operator";
import { deleteWriters, type Lifecycle, type Measured, runLifecycle, warmUp, withOperator } from "./lifecycle";
import { isReady } from "./object-watch";
import type { OperatorProcess } from "./operator-process";
import { memoryMiB } from "./processes";
import { atMost, beside, type Figure, type Section, seconds, summary } from "./results";
import { totalMs, type Usage, usageOf } from "./usage";
import { createNamespaces, keyOf, type Writer, writerManifest, writersOf } from "./writers";

interface Size {
  rounds: number;
  kubectl: number;
  objects: number;
  /** In which objects are created, changed and deleted at once. */
  lifecycles: number;
}

const FULL: Size = { rounds: 5, kubectl: 500, objects: 1_000, lifecycles: 2 };
const QUICK: Size = { rounds: 1, kubectl: 20, objects: 30, lifecycles: 1 };

/** Who is measured, alternately; Kindstack first, because it installs the CRDs. */
const OPERATORS = {
  kindstack: (cluster) => cluster.startOperator(),
  go: (cluster) => cluster.startGoOperator({ passOverOwnWrites: false }),
  tuned: (cluster) => cluster.startGoOperator({ passOverOwnWrites: true }),
} as const satisfies Record<string, (cluster: BenchCluster) => Promise<OperatorProcess>>;
type Name = keyof typeof OPERATORS;
const NAMES = Object.keys(OPERATORS) as Name[];
const STEPS = ["created", "changed", "deleted"] as const;
const PROCESSES = {
  apiServer: "API server",
  etcd: "etcd",
  postgres: "PostgreSQL",
  operator: "operator",
  engine: "engine",
} as const;
const TUNED = `${GO_OPERATOR} that passes over its own writes`;

/** Milliseconds from the first object's creation until all were created, and until all were Ready. */
interface KubectlBurst {
  createdMs: number;
  readyMs: number;
}

/** The first burst that a process has to do with, and the next one. */
interface Pair {
  first: KubectlBurst;
  next: KubectlBurst;
}

type Step = keyof Lifecycle;

/** All objects at once, in one round. */
interface AtOnce {
  times: Lifecycle;
  usage: Record<Step, Usage>;
  peakMiB: number;
}

interface OperatorMeasured {
  pairs: Pair[];
  rounds: AtOnce[];
}

/** The same objects by Kindstack and by an operator in Go, alternately on one control plane and database. */
export async function besideGo(context: BenchContext): Promise<Section> {
  const size = context.quick ? QUICK : FULL;
  return withBenchCluster(context, async (cluster) => {
    const measured: Record<Name, OperatorMeasured> = {
      kindstack: { pairs: [], rounds: [] },
      go: { pairs: [], rounds: [] },
      tuned: { pairs: [], rounds: [] },
    };
    for (let round = 1; round <= size.rounds; round++) {
      for (const name of NAMES) {
        const writers = (burst: keyof Pair) => writersOf(`kubectl-${name}-${round}-${burst}`, size.kubectl);
        const what = `${name}, round ${round} of ${size.rounds}`;
        const pair = await withWarm(context, cluster, name, what, async (one) => ({
          first: await throughKubectl(one, writers("first")),
          next: await throughKubectl(one, writers("next")),
        }));
        measured[name].pairs.push(pair);
      }
    }
    for (let round = 1; round <= size.lifecycles; round++) {
      for (const name of NAMES) {
        const writers = writersOf(`at-once-${name}-${round}`, size.objects);
        const what = `${name}, at once, round ${round} of ${size.lifecycles}`;
        measured[name].rounds.push(await withWarm(context, cluster, name, what, (one) => allAtOnce(one, writers)));
      }
    }
    return besideGoSection(size, measured);
  });
}

async function allAtOnce(measured: Measured, writers: readonly Writer[]): Promise<AtOnce> {
  const usage: Partial<Record<Step, Usage>> = {};
  const times = await runLifecycle(measured, writers, async (name, step) => {
    const { result, usage: used } = await usageOf(measured, step);
    usage[name] = used;
    return result;
  });
  const peakMiB = await memoryMiB(measured.operator.pid, "peak");
  return { times, usage: usage as Record<Step, Usage>, peakMiB };
}

/** Gives the work a new process of one of them, which has had one object before. */
function withWarm<T>(
  context: BenchContext,
  cluster: BenchCluster,
  name: Name,
  what: string,
  work: (measured: Measured) => Promise<T>,
): Promise<T> {
  const told = { ...context, detail: (text: string) => context.detail(`${what}: ${text}`) };
  const start = () => OPERATORS[name](cluster);
  return withOperator(told, cluster, start, async (measured) => {
    await warmUp(measured, writersOf("default", 1));
    return work(measured);
  });
}

async function throughKubectl(measured: Measured, writers: readonly Writer[]): Promise<KubectlBurst> {
  const { context, cluster, watch } = measured;
  await createNamespaces(cluster.client, writers);
  const file = path.join(cluster.scratch, "writers.json");
  const items = writers.map((writer) => writerManifest(writer));
  await fs.writeFile(file, JSON.stringify({ apiVersion: "v1", kind: "List", items }));
  const keys = writers.map(keyOf);
  const created = watch.until(keys, (object) => object !== undefined);
  const ready = watch.until(keys, isReady, (done) => context.detail(`${done} of ${writers.length} Ready`));
  const both = Promise.all([created, ready]);
  both.catch(() => {}); // kubectl may fail first
  await execa("kubectl", ["create", "-f", file], { env: cluster.dev.env, cancelSignal: context.signal });
  const [{ first, last }, { last: lastReady }] = await both;
  await deleteWriters(measured, writers);
  return { createdMs: last - first, readyMs: lastReady - first };
}

const TIME_LIMITS = { created: 0.95, changed: 1.05, deleted: 0.8 };
const CPU_LIMITS = { created: 1.15, changed: 1.45, deleted: 1.3 };
const OWN_CPU_LIMIT_MS = 7;
/** The first deletions read their objects: nothing has proved yet that the cache is up to date. */
const FIRST_GETS = 16;

function besideGoSection(size: Size, { kindstack, go, tuned }: Record<Name, OperatorMeasured>): Section {
  const times = ({ pairs }: OperatorMeasured, which: keyof KubectlBurst, burst: keyof Pair = "first") =>
    seconds(pairs.map((pair) => pair[burst][which]));
  const ready: Figure = {
    what: `${size.kubectl} by kubectl create: from the first one until all are Ready`,
    ...times(kindstack, "readyMs"),
  };
  const again: Figure = {
    what: `${size.kubectl} more by kubectl create, to the same process`,
    ...times(kindstack, "readyMs", "next"),
  };
  const same = { ...ready, what: "the same" };
  const mark = atMost(1, "ratio");
  const lifecycle = (step: Step): Figure[] => {
    const of = ({ rounds }: OperatorMeasured) => seconds(rounds.map((round) => round.times[step]));
    const figure: Figure = { what: `${size.objects} ${step} at once`, ...of(kindstack) };
    return [
      { ...figure, against: beside(GO_OPERATOR, of(go)), mark: atMost(TIME_LIMITS[step], "ratio") },
      { ...figure, what: "the same", against: beside(TUNED, of(tuned)) },
    ];
  };
  const peak = ({ rounds }: OperatorMeasured) => Math.max(...rounds.map(({ peakMiB }) => peakMiB));
  return {
    id: "beside-go",
    title: "Beside an operator in Go",
    notes: [
      `By kubectl: ${size.rounds} alternating rounds; the median, with the least and the most. At once: ${size.lifecycles}. Each time it is a ` +
        "new process that has had one object before; what is created by kubectl is deleted, and as many more are created.",
      "Objects at once: by one client with 32 requests at a time, in one namespace; the time runs from the first request.",
      "CPU time of all processes: API server, etcd, PostgreSQL, the operator and its engine, until 3 s after the last object.",
      `That it passes over its own writes (GenerationChangedPredicate) is not controller-runtime's default; with the default, the ` +
        "operator in Go looks at each object, and its row, again after each of its own writes.",
    ],
    figures: [
      { ...ready, against: beside(GO_OPERATOR, times(go, "readyMs")), mark },
      { ...same, against: beside(TUNED, times(tuned, "readyMs")) },
      {
        what: "kubectl create alone",
        ...times(kindstack, "createdMs"),
        against: beside(GO_OPERATOR, times(go, "createdMs")),
      },
      { ...again, against: beside(GO_OPERATOR, times(go, "readyMs", "next")), mark },
      { ...again, what: "the same", against: beside(TUNED, times(tuned, "readyMs", "next")) },
      ...STEPS.flatMap(lifecycle),
      ...STEPS.flatMap((step) => cpuFigures(step, size.objects, kindstack, go, tuned)),
      {
        what: "peak memory of the operator",
        value: peak(kindstack),
        unit: "MiB",
        against: beside(GO_OPERATOR, { value: peak(go) }),
      },
    ],
  };
}

/** What an object costs in one step, of all processes and of single ones. */
function cpuFigures(step: Step, objects: number, ...[kindstack, go, tuned]: OperatorMeasured[]): Figure[] {
  const each = (of: OperatorMeasured | undefined, part: (usage: Usage) => number) =>
    summary((of?.rounds ?? []).map(({ usage }) => part(usage[step]) / objects));
  const total: Figure = {
    what: `CPU time of an object ${step}, all processes`,
    ...each(kindstack, totalMs),
    unit: "ms",
  };
  const parts = (["apiServer", "etcd", "postgres", "operator", "engine"] as const).map(
    (name): Figure => ({
      what: `${step}: ${PROCESSES[name]}`,
      ...each(kindstack, (usage) => usage[name]),
      unit: "ms",
      ...(name !== "engine" && {
        against: beside(
          GO_OPERATOR,
          each(go, (usage) => usage[name]),
        ),
      }),
    }),
  );
  const own = each(kindstack, ({ operator, engine }) => operator + engine);
  const gets = each(kindstack, (usage) => usage.gets * objects);
  return [
    { ...total, against: beside(GO_OPERATOR, each(go, totalMs)), mark: atMost(CPU_LIMITS[step], "ratio") },
    { ...total, what: "the same", against: beside(TUNED, each(tuned, totalMs)) },
    ...parts,
    {
      what: `${step}: operator and engine`,
      ...own,
      unit: "ms",
      ...(step === "created" && { mark: atMost(OWN_CPU_LIMIT_MS) }),
    },
    {
      what: `${step}: requests of the operator for an object`,
      ...each(kindstack, ({ requests }) => requests),
      unit: "count",
      against: beside(
        GO_OPERATOR,
        each(go, ({ requests }) => requests),
      ),
    },
    {
      what: `${step}: GETs of PostgresWriters, of all ${objects}`,
      ...gets,
      unit: "count",
      ...(step === "deleted" && { mark: atMost(FIRST_GETS) }),
    },
  ];
}
