import fs from "node:fs/promises";
import path from "node:path";
import { execa } from "execa";
import { type BenchCluster, type BenchContext, withBenchCluster } from "./cluster";
import { GO_OPERATOR } from "./go-operator";
import { type Lifecycle, type Measured, runLifecycle, warmUp, withOperator } from "./lifecycle";
import { isGone, isReady } from "./object-watch";
import type { OperatorProcess } from "./operator-process";
import { memoryMiB } from "./processes";
import { type Alternative, type Figure, type Section, summary } from "./results";
import { createNamespaces, forEachAtOnce, keyOf, type Writer, writerManifest, writersOf, writerType } from "./writers";

interface Size {
  rounds: number;
  kubectl: number;
  objects: number;
}

/** The number of objects that the published figures of an operator in Go are for. */
const KUBECTL_OBJECTS = 500;
const ELSEWHERE: Alternative = { what: GO_OPERATOR, value: 6.8, range: [5.9, 6.8], measured: "elsewhere" };

const FULL: Size = { rounds: 5, kubectl: KUBECTL_OBJECTS, objects: 1_000 };
const QUICK: Size = { rounds: 1, kubectl: 20, objects: 30 };

/** Who is measured, in turns; Kindstack first, because it installs the CRDs. */
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

/** The same objects by Kindstack and by an operator in Go, in turns on one control plane and database. */
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
  return withOperator(
    told,
    cluster,
    () => OPERATORS[name](cluster),
    async (measured) => {
      await warmUp(cluster, measured.watch);
      return work(measured);
    },
  );
}

async function throughKubectl(
  { context: { detail, signal }, cluster, watch }: Measured,
  writers: readonly Writer[],
): Promise<KubectlBurst> {
  await createNamespaces(cluster.client, writers);
  const file = path.join(cluster.scratch, "writers.json");
  const items = writers.map((writer) => writerManifest(writer));
  await fs.writeFile(file, JSON.stringify({ apiVersion: "v1", kind: "List", items }));
  const keys = writers.map(keyOf);
  const created = watch.until(keys, (object) => object !== undefined);
  const ready = watch.until(keys, isReady, (done) => detail(`${done} of ${writers.length} Ready`));
  const both = Promise.all([created, ready]);
  both.catch(() => {}); // kubectl may fail first
  await execa("kubectl", ["create", "-f", file], { env: cluster.dev.env, cancelSignal: signal });
  const [{ first, last }, { last: lastReady }] = await both;
  const type = await writerType(cluster.client);
  await forEachAtOnce(writers, ({ name, namespace }) => cluster.client.delete(type, name, namespace));
  await watch.until(keys, isGone);
  return { createdMs: last - first, readyMs: lastReady - first };
}

function besideGoSection(size: Size, { kindstack, go, tuned }: Record<Name, OperatorMeasured>): Section {
  const seconds = ({ pairs }: OperatorMeasured, which: keyof KubectlBurst, burst: keyof Pair = "first") =>
    summary(pairs.map((pair) => pair[burst][which] / 1000));
  const against = (what: string, figure: Pick<Alternative, "value" | "range">): Alternative => ({
    what,
    ...figure,
    measured: "here",
  });
  const ready: Figure = {
    what: `${size.kubectl} by kubectl create: from the first one until all are Ready`,
    unit: "s",
    ...seconds(kindstack, "readyMs"),
  };
  const again: Figure = {
    what: `${size.kubectl} more by kubectl create, to the same process`,
    unit: "s",
    ...seconds(kindstack, "readyMs", "next"),
  };
  const same = { ...ready, what: "the same" };
  const atMost = (limit: number) => ({ of: "ratio", at: "most", limit }) as const;
  const mark = atMost(1);
  const lifecycle = (step: keyof Lifecycle): Figure[] => {
    const of = ({ lifecycle }: OperatorMeasured) => ({ value: lifecycle[step].ms / 1000 });
    const figure: Figure = { what: `${size.objects} ${step} at once`, unit: "s", ...of(kindstack) };
    return [
      { ...figure, against: against(GO_OPERATOR, of(go)), ...(step === "changed" && { mark: atMost(1.1) }) },
      { ...figure, what: "the same", against: against(TUNED, of(tuned)) },
    ];
  };
  return {
    id: "beside-go",
    title: "Beside an operator in Go",
    notes: [
      `By kubectl: ${size.rounds} rounds in turns; the median, with the least and the most. The rest once each. Each time it is a ` +
        "new process that has had one object before; what is created by kubectl is deleted, and as many more are created.",
      "Objects at once: by one client with 32 requests at a time, in one namespace; the time runs from the first request.",
      `That it passes over its own writes (GenerationChangedPredicate) is not controller-runtime's default; with the default, the ` +
        "operator in Go looks at each object, and its row, again after each of its own writes.",
    ],
    figures: [
      { ...ready, against: against(GO_OPERATOR, seconds(go, "readyMs")), mark },
      { ...same, against: against(TUNED, seconds(tuned, "readyMs")) },
      ...(size.kubectl === KUBECTL_OBJECTS ? [{ ...same, against: ELSEWHERE }] : []),
      {
        what: "kubectl create alone",
        unit: "s",
        ...seconds(kindstack, "createdMs"),
        against: against(GO_OPERATOR, seconds(go, "createdMs")),
      },
      { ...again, against: against(GO_OPERATOR, seconds(go, "readyMs", "next")), mark },
      { ...again, what: "the same", against: against(TUNED, seconds(tuned, "readyMs", "next")) },
      ...lifecycle("created"),
      ...lifecycle("changed"),
      ...lifecycle("deleted"),
      {
        what: "peak memory of the operator",
        value: kindstack.peakMiB,
        unit: "MiB",
        against: against(GO_OPERATOR, { value: go.peakMiB }),
      },
    ],
  };
}
