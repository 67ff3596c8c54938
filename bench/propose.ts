import { APPROVAL_TYPE } from "../stacks/contract/approval";
import { findCondition } from "../stacks/contract/condition";
import { kindApiVersion, kindName, statusOf } from "../stacks/contract/kind";
import { MODE_ANNOTATION, type Mode } from "../stacks/contract/mode";
import { objectKey } from "../stacks/contract/object";
import { PLAN_TYPE, type Plan } from "../stacks/contract/plan";
import { memcached } from "../stacks/kinds/memcached/kind";
import { type BenchCluster, type BenchContext, withBenchCluster } from "./cluster";
import { ObjectWatch } from "./object-watch";
import { atMost, beside, type Figure, type Section, seconds } from "./results";
import { forEachAtOnce } from "./writers";

const FULL = { objects: 1_000, rounds: 10 };
const QUICK = { objects: 20, rounds: 2 };
const TYPE = { apiVersion: kindApiVersion(memcached), kind: memcached.kind };
const NAMESPACE = "proposed";
/** Of an object that needs no approval. */
const OTHER = { namespace: "others", name: "other" };
const PORT = 11_211;
const NAMESPACE_TYPE = { apiVersion: "v1", kind: "Namespace" } as const;
/** What another version of the operator makes of them. */
const NEW_PROGRAM = { MEMCACHED_IMAGE: "memcached:1.6.39" };

type Live = Parameters<Parameters<ObjectWatch["until"]>[1]>[0];

/** What it costs that changes wait for an approval: one update, and the plans of many objects for a new program. */
export async function propose(context: BenchContext): Promise<Section> {
  const { objects, rounds } = context.quick ? QUICK : FULL;
  return withBenchCluster(context, async (cluster) => {
    let operator = await cluster.startOperator();
    const measured = <T>(work: (watch: ObjectWatch) => Promise<T>) =>
      ObjectWatch.during(cluster.client, TYPE, context.signal, work);
    try {
      for (const name of [NAMESPACE, OTHER.namespace]) {
        await cluster.client.create({ ...NAMESPACE_TYPE, metadata: { name } });
      }
      const single = await measured((watch) => oneByOne(context, cluster, watch, rounds));
      const names = Array.from({ length: objects }, (_, index) => `many-${index}`);
      await measured((watch) => createAll(context, cluster, watch, names));
      await setMode(cluster, "Propose");
      await operator.stop();
      operator = await cluster.startOperator(NEW_PROGRAM);
      const many = await measured((watch) => asGroup(context, cluster, watch, names));
      return section(objects, rounds, single, many);
    } finally {
      await operator.stop();
    }
  });
}

interface Single {
  applied: number[];
  approved: number[];
}

/** The same change of one object, applied at once and from its approval on. */
async function oneByOne(
  { detail }: BenchContext,
  cluster: BenchCluster,
  watch: ObjectWatch,
  rounds: number,
): Promise<Single> {
  const { client } = cluster;
  const times: Single = { applied: [], approved: [] };
  const name = "single";
  await client.create(manifestOf(name));
  const until = (isDone: (object: Live) => boolean) => watch.until([`${NAMESPACE}/${name}`], isDone);
  const listenOn = (port: number) => client.mergePatch(TYPE, name, NAMESPACE, { spec: { containerPort: port } });
  let port = PORT; // another one each time: what was approved once needs no other approval
  await until(isSynced);
  for (let round = 0; round <= rounds; round++) {
    detail(`round ${round} of ${rounds}`);
    await setMode(cluster, "Apply");
    await until((object) => hasMode(object, "Apply"));
    let started = performance.now();
    await listenOn(++port);
    times.applied.push((await until((object) => isSynced(object, port))).last - started);
    await setMode(cluster, "Propose");
    await until((object) => hasMode(object, "Propose"));
    await listenOn(++port);
    await until(isWaiting);
    const [plan] = await plans(cluster);
    started = performance.now();
    await approve(cluster, { object: { kind: kindName(memcached), name }, digest: plan?.spec.digest });
    times.approved.push((await until((object) => isSynced(object, port))).last - started);
  }
  return { applied: times.applied.slice(1), approved: times.approved.slice(1) };
}

async function createAll(
  { detail }: BenchContext,
  { client }: BenchCluster,
  watch: ObjectWatch,
  names: readonly string[],
): Promise<void> {
  await setMode({ client }, "Apply");
  const keys = [...names.map(keyOf), objectKey(OTHER)];
  const all = watch.until(keys, isSynced, (done) => detail(`${done} of ${names.length} created`));
  await client.create(manifestOf(OTHER.name, OTHER.namespace));
  await forEachAtOnce(names, (name) => client.create(manifestOf(name)));
  await all;
}

interface Many {
  plannedMs: number;
  groups: number;
  appliedMs: number;
  /** Of changes of another object, until each was applied. */
  othersMs: number[];
}

/** From when the new operator is ready: until all plans wait, and from one approval of all until all are applied. */
async function asGroup(
  { detail }: BenchContext,
  cluster: BenchCluster,
  watch: ObjectWatch,
  names: readonly string[],
): Promise<Many> {
  const keys = names.map(keyOf);
  let started = performance.now();
  await watch.until(keys, isWaiting, (done) => detail(`${done} of ${names.length} plans`));
  const plannedMs = performance.now() - started;
  const all = (await plans(cluster)).filter(({ spec }) => names.includes(spec.object.name));
  const groups = new Set(all.map(({ spec }) => spec.group)).size;
  started = performance.now();
  await approve(cluster, { digests: all.map(({ spec }) => spec.digest) });
  let isOver = false;
  const applied = watch
    .until(keys, isSynced, (done) => detail(`${done} of ${names.length} applied`))
    .finally(() => {
      isOver = true;
    });
  applied.catch(() => {}); // awaited below
  const othersMs: number[] = [];
  for (let port = PORT + 1; !isOver; port++) othersMs.push(await changeOther(cluster, watch, port));
  return { plannedMs, groups, appliedMs: (await applied).last - started, othersMs };
}

/** @returns ms from the change of an object that needs no approval until it is applied */
async function changeOther({ client }: BenchCluster, watch: ObjectWatch, port: number): Promise<number> {
  const { namespace, name } = OTHER;
  const started = performance.now();
  await client.mergePatch(TYPE, name, namespace, { spec: { containerPort: port } });
  return (await watch.until([objectKey(OTHER)], (object) => isSynced(object, port))).last - started;
}

async function plans({ client }: BenchCluster): Promise<Plan[]> {
  return (await client.list(PLAN_TYPE, { namespace: NAMESPACE })).items as Plan[];
}

async function approve({ client }: BenchCluster, spec: object): Promise<void> {
  const status = await client.json<{ status: { userInfo: { username: string } } }>(
    "POST",
    "/apis/authentication.k8s.io/v1/selfsubjectreviews",
    { body: { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" } },
  );
  const { username: approver } = status.status.userInfo;
  const metadata = { generateName: "bench-", namespace: NAMESPACE };
  await client.create({ ...APPROVAL_TYPE, metadata, spec: { ...spec, decision: "Approve", approver } });
}

async function setMode({ client }: Pick<BenchCluster, "client">, mode: Mode): Promise<void> {
  const annotations = { [MODE_ANNOTATION]: mode };
  await client.mergePatch(NAMESPACE_TYPE, NAMESPACE, undefined, { metadata: { annotations } });
}

function manifestOf(name: string, namespace = NAMESPACE) {
  return { ...TYPE, metadata: { name, namespace }, spec: { size: 1, containerPort: PORT } };
}

function keyOf(name: string): string {
  return objectKey({ namespace: NAMESPACE, name });
}

function synced(object: Live) {
  const condition = object && findCondition(statusOf(object).conditions, "Synced");
  return condition?.observedGeneration === object?.metadata.generation ? condition : undefined;
}

function isSynced(object: Live, port?: number): boolean {
  const listensOn = (object?.spec as { containerPort: number } | undefined)?.containerPort;
  return (port === undefined || listensOn === port) && synced(object)?.status === "True";
}

/** Whether the operator has seen the mode of the namespace. */
function hasMode(object: Live, mode: Mode): boolean {
  return object !== undefined && (statusOf(object).mode ?? "Apply") === mode;
}

function isWaiting(object: Live): boolean {
  return synced(object)?.reason === "WaitsForApproval";
}

function section(objects: number, rounds: number, { applied, approved }: Single, many: Many): Section {
  const plansFigure: Figure = {
    what: `${objects} objects in Propose, a new program: until all plans wait`,
    ...seconds(many.plannedMs),
    mark: atMost(60),
  };
  return {
    id: "propose",
    title: "Changes that wait for an approval",
    notes: [
      `One Memcached, ${rounds} rounds, alternately: from a change until it is applied, and from the approval of a change until it is applied.`,
      "The plans of many Memcacheds: from when the operator with another image is ready. One approval is for all of them.",
      "While these are applied, the cluster's own controllers roll out the Deployments on the same cores.",
    ],
    figures: [
      {
        what: "approval → applied",
        ...seconds(approved),
        against: beside("change → applied, in Apply", seconds(applied)),
        mark: atMost(2, "ratio"),
      },
      plansFigure,
      { what: "groups on the one screen", value: many.groups, unit: "count", mark: atMost(1) },
      { what: `one approval → all ${objects} applied`, ...seconds(many.appliedMs), mark: atMost(60) },
      {
        what: "meanwhile, change → applied of another object",
        ...seconds(many.othersMs),
        against: beside("before, alone", seconds(applied)),
      },
    ],
  };
}
