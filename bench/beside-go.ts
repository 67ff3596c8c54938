import fs from "node:fs/promises";
import path from "node:path";
import { execa } from "execa";
import { type BenchCluster, type BenchContext, withBenchCluster } from "./cluster";
import { GO_OPERATOR } from "./go-operator";
import { deleteWriters, type Lifecycle, type Measured, runLifecycle, warmUp, withOperator } from "./lifecycle";
import { isReady } from "./object-watch";
import type { OperatorProcess } from "./operator-process";
import { memoryMiB } from "./processes";
import { atMost, beside, type Figure, type Section, seconds } from "./results";
import { createNamespaces, keyOf, type Writer, writerManifest, writersOf } from "./writers";

interface Size {
  rounds: number;
  kubectl: number;
  objects: number;
}

const FULL: Size = { rounds: 5, kubectl: 500, objects: 1_000 };
const QUICK: Size = { rounds: 1, kubectl: 20, objects: 30 };

/** Who is measured, alternately; Kindstack first, because it installs the CRDs. */
const OPERATORS = {
  kindstack: (cluster) => cluster.startOperator(),
  go: (cluster) => cluster.startGoOperator({ passOverOwnWrites: false }),
  tuned: (cluster) => cluster.startGoOperator({ passOverOwnWrites: true }),
} as const satisfies Record<string, (cluster: BenchCluster) => Promise<OperatorProcess>>;
type Name = keyof typeof OPERATORS;
const NAMES = Object.keys(OPERATORS) as Name[];
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

interface OperatorMeasured {
  pairs: Pair[];
  lifecycle: Lifecycle;
  peakMiB: number;
}

/** The same objects by Kindstack and by an operator in Go, alternately on one control plane and database. */
export async function besideGo(context: BenchContext): Promise<Section> {
  const size = context.quick ? QUICK : FULL;
  return withBenchCluster(context, async (cluster) => {
    const pairs: Record<Name, Pair[]> = { kindstack: [], go: [], tuned: [] };
    for (let round = 1; round <= size.rounds; round++) {
      for (const name of NAMES) {
        const writers = (burst: keyof Pair) => writersOf(`kubectl-${name}-${round}-${burst}`, size.kubectl);
        const what = `${name}, round ${round} of ${size.rounds}`;
        const pair = await withWarm(context, cluster, name, what, async (one) => ({
          first: await throughKubectl(one, writers("first")),
          next: await throughKubectl(one, writers("next")),
        }));
        pairs[name].push(pair);
      }
    }
    const measured: Partial<Record<Name, OperatorMeasured>> = {};
    for (const name of NAMES) {
      const writers = writersOf(`at-once-${name}`, size.objects);
      measured[name] = await withWarm(context, cluster, name, name, async (one) => ({
        pairs: pairs[name],
        lifecycle: await runLifecycle(one, writers),
        peakMiB: await memoryMiB(one.operator.pid, "peak"),
      }));
    }
    return besideGoSection(size, measured as Record<Name, OperatorMeasured>);
  });
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

const AT_ONCE_LIMITS = { created: 0.95, changed: 1.05, deleted: 0.8 };

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
  const lifecycle = (step: keyof Lifecycle): Figure[] => {
    const of = ({ lifecycle }: OperatorMeasured) => seconds(lifecycle[step]);
    const figure: Figure = { what: `${size.objects} ${step} at once`, ...of(kindstack) };
    return [
      { ...figure, against: beside(GO_OPERATOR, of(go)), mark: atMost(AT_ONCE_LIMITS[step], "ratio") },
      { ...figure, what: "the same", against: beside(TUNED, of(tuned)) },
    ];
  };
  return {
    id: "beside-go",
    title: "Beside an operator in Go",
    notes: [
      `By kubectl: ${size.rounds} alternating rounds; the median, with the least and the most. The rest once each. Each time it is a ` +
        "new process that has had one object before; what is created by kubectl is deleted, and as many more are created.",
      "Objects at once: by one client with 32 requests at a time, in one namespace; the time runs from the first request.",
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
      ...lifecycle("created"),
      ...lifecycle("changed"),
      ...lifecycle("deleted"),
      {
        what: "peak memory of the operator",
        value: kindstack.peakMiB,
        unit: "MiB",
        against: beside(GO_OPERATOR, { value: go.peakMiB }),
      },
    ],
  };
}
