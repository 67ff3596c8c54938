import { randomUUID } from "node:crypto";
import { availableParallelism } from "node:os";
import type { Manifest } from "../providers/kubernetes/client";
import { type AnyKind, kindApiVersion, ownerDescription, parseObject } from "../stacks/contract/kind";
import { stackName } from "../stacks/contract/object";
import { memcached } from "../stacks/memcached/kind";
import { tenant } from "../stacks/tenant/kind";
import { type BareCli, withBareCli } from "./bare-cli";
import { type BenchCluster, type BenchContext, withBenchCluster } from "./cluster";
import { isReady, ObjectWatch } from "./object-watch";
import { memoryMiB } from "./processes";
import type { Figure, Section } from "./results";
import { WITHOUT_SERVER, WITHOUT_SERVER_NOTE } from "./without-server";
import { forEachAtOnce } from "./writers";

const FULL = { tenants: 100, memcacheds: 200, sample: 20 };
const QUICK = { tenants: 5, memcacheds: 5, sample: 2 };

/** Many objects of one kind, each with its own stack. */
interface Load {
  kind: AnyKind;
  /** Of the names. */
  prefix: string;
  /** What it is called in the table. */
  what: string;
  count: number;
  manifest(name: string): Manifest;
  perSecond: number;
}

interface Measured {
  ms: number;
  cliProcesses: number;
}

/** Tenants and Memcacheds: kinds whose objects have a stack each, so that each is an update of its own. */
export async function ownStacks(context: BenchContext): Promise<Section> {
  const { tenants, memcacheds, sample } = context.quick ? QUICK : FULL;
  const atOnce = availableParallelism();
  const loads = [tenantsLoad(tenants), memcachedsLoad(memcacheds)];
  return withBenchCluster(context, async (cluster) => {
    const operator = await cluster.startOperator();
    const figures: Figure[] = [];
    await withBareCli(context, cluster, async (bare) => {
      for (const load of loads) {
        const before = await operator.cliProcesses();
        const ms = await throughOperator(context, cluster, load);
        const measured = { ms, cliProcesses: (await operator.cliProcesses()) - before };
        context.detail(`${sample} of them by the bare CLI`);
        figures.push(...figuresOf(load, measured, await throughCli(bare, load, sample, atOnce), sample));
      }
    });
    const peakMiB = await memoryMiB(operator.pid, "peak");
    await operator.stop();
    const withoutServer = await cluster.startOperator(WITHOUT_SERVER);
    const ms = await throughOperator(context, cluster, tenantsLoad(tenants, "without-server"));
    await withoutServer.stop();
    figures.push({
      what: "Tenants of 3 namespaces a second, without the Pulumi server",
      value: tenants / (ms / 1000),
      unit: "/s",
    });
    return {
      id: "own-stacks",
      title: "Objects with a stack each, created at once",
      notes: [
        `The bare CLI: one update each, ${atOnce} at a time, of ${sample} of them; its time for all is that in proportion.`,
        WITHOUT_SERVER_NOTE,
        "A Memcached is Ready when its Deployment is as it should be; its Pods come after that.",
      ],
      figures: [...figures, { what: "peak memory of the operator", value: peakMiB, unit: "MiB" }],
    };
  });
}

function tenantsLoad(count: number, prefix = tenant.singular): Load {
  return {
    kind: tenant,
    prefix,
    what: "Tenants of 3 namespaces",
    count,
    perSecond: 10,
    manifest: (name) => ({
      apiVersion: kindApiVersion(tenant),
      kind: tenant.kind,
      metadata: { name },
      spec: {
        adminEmail: "admin@example.com",
        adminGroups: ["admins"],
        userGroups: ["users"],
        namespaces: [1, 2, 3].map((number) => `${name}-${number}`),
      },
    }),
  };
}

function memcachedsLoad(count: number): Load {
  return {
    kind: memcached,
    prefix: memcached.singular,
    what: "Memcacheds",
    count,
    perSecond: 15,
    manifest: (name) => ({
      apiVersion: kindApiVersion(memcached),
      kind: memcached.kind,
      metadata: { name, namespace: "default" },
      spec: { size: 1, containerPort: 11211 },
    }),
  };
}

async function throughOperator(
  { signal, detail }: BenchContext,
  { client }: BenchCluster,
  { kind, prefix, what, count, manifest }: Load,
): Promise<number> {
  const type = await client.resourceType(kindApiVersion(kind), kind.kind);
  const watch = await ObjectWatch.open(client, type, signal);
  try {
    const manifests = Array.from({ length: count }, (_, index) => manifest(`${prefix}-${index}`));
    const keys = manifests.map(keyOf);
    const ready = watch.until(keys, isReady, (done) => detail(`${done} of ${count} ${what} Ready`));
    ready.catch(() => {}); // the creation may fail first
    const started = performance.now();
    await forEachAtOnce(manifests, (one) => client.create(one));
    return (await ready).last - started;
  } finally {
    watch.close();
  }
}

async function throughCli(bare: BareCli, { kind, manifest }: Load, count: number, atOnce: number): Promise<Measured> {
  const names = Array.from({ length: count }, (_, index) => `bare-${kind.singular}-${index}`);
  const before = await bare.cliProcesses();
  const started = performance.now();
  await forEachAtOnce(
    names,
    (name) => {
      const wanted = manifest(name);
      const metadata = { ...wanted.metadata, name, uid: randomUUID(), resourceVersion: "0", generation: 1 };
      const object = parseObject(kind, { ...wanted, metadata });
      const owner = { uid: metadata.uid, description: ownerDescription(kind, keyOf(wanted)) };
      return bare.up(stackName(kind, keyOf(wanted)), () =>
        kind.program(object, { owner, owned: [], recorded: new Set(), watched: [] }),
      );
    },
    atOnce,
  );
  return { ms: performance.now() - started, cliProcesses: (await bare.cliProcesses()) - before };
}

function figuresOf({ what, count, perSecond }: Load, operator: Measured, bare: Measured, sample: number): Figure[] {
  const inProportion = `the bare CLI, ${count} in proportion to ${sample}`;
  const rate: Figure = { what: `${what} a second`, value: count / (operator.ms / 1000), unit: "/s" };
  return [
    {
      what: `${count} ${what}`,
      value: operator.ms / 1000,
      unit: "s",
      against: { what: inProportion, value: ((bare.ms / 1000) * count) / sample, measured: "here" },
    },
    { ...rate, mark: { of: "value", at: "least", limit: perSecond } },
    {
      what: "processes of Pulumi for that",
      value: operator.cliProcesses,
      unit: "count",
      against: { what: inProportion, value: (bare.cliProcesses * count) / sample, measured: "here" },
    },
  ];
}

function keyOf({ metadata: { namespace, name = "" } }: Manifest): string {
  return namespace === undefined ? name : `${namespace}/${name}`;
}
