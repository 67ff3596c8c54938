import { availableParallelism } from "node:os";
import type { Manifest } from "../providers/kubernetes/client";
import { type AnyKind, kindApiVersion } from "../stacks/contract/kind";
import { objectKey, stackName } from "../stacks/contract/object";
import { memcached } from "../stacks/kinds/memcached/kind";
import { tenant } from "../stacks/kinds/tenant/kind";
import { type BareEngine, withBareEngine } from "./bare-engine";
import { type BenchContext, withBenchCluster } from "./cluster";
import { atOnce, type Measured, withOperator } from "./lifecycle";
import { isReady, ObjectWatch } from "./object-watch";
import { memoryMiB } from "./processes";
import { atLeast, beside, type Figure, type Section, seconds } from "./results";
import { forEachAtOnce, programOf } from "./writers";

const FULL = { tenants: 100, memcacheds: 200, sample: 20 };
const QUICK = { tenants: 5, memcacheds: 5, sample: 2 };

/** Many objects of one kind. */
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

/** Tenants and Memcacheds, whose objects have several resources, or one that others take time to bring up. */
export async function ownStacks(context: BenchContext): Promise<Section> {
  const { tenants, memcacheds, sample } = context.quick ? QUICK : FULL;
  const cores = availableParallelism();
  const loads = [tenantsLoad(tenants), memcachedsLoad(memcacheds)];
  return withBenchCluster(context, async (cluster) => {
    const own = await withOperator(context, cluster, cluster.startOperator, (measured) =>
      withBareEngine(context, cluster, async (bare) => {
        const figures: Figure[] = [];
        for (const load of loads) {
          const byOperator = await throughOperator(measured, load);
          context.detail(`${sample} of them by the bare engine`);
          figures.push(...figuresOf(load, byOperator, await throughEngine(bare, load, sample, cores), sample));
        }
        return { figures, peakMiB: await memoryMiB(measured.operator.pid, "peak") };
      }),
    );
    return {
      id: "own-stacks",
      title: "Tenants and Memcacheds, created at once",
      notes: [
        `The bare engine: one update each, ${cores} at a time, of ${sample} of them; its time for all is that in proportion.`,
        "A Memcached is Ready when its Deployment is as it should be; its Pods come after that.",
      ],
      figures: [...own.figures, { what: "peak memory of the operator", value: own.peakMiB, unit: "MiB" }],
    };
  });
}

function tenantsLoad(count: number, prefix = tenant.singular): Load {
  return {
    kind: tenant,
    prefix,
    what: "Tenants of 3 namespaces",
    count,
    perSecond: 14,
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
    perSecond: 16,
    manifest: (name) => ({
      apiVersion: kindApiVersion(memcached),
      kind: memcached.kind,
      metadata: { name, namespace: "default" },
      spec: { size: 1, containerPort: 11211 },
    }),
  };
}

function throughOperator(measured: Measured, { kind, prefix, what, count, manifest }: Load): Promise<number> {
  const { context, cluster } = measured;
  const objects = Array.from({ length: count }, (_, index) => manifest(`${prefix}-${index}`).metadata);
  const type = { apiVersion: kindApiVersion(kind), kind: kind.kind };
  return ObjectWatch.during(cluster.client, type, context.signal, (watch) =>
    atOnce({ ...measured, watch }, objects, `${what} Ready`, isReady, ({ name = "" }) =>
      cluster.client.create(manifest(name)),
    ),
  );
}

async function throughEngine(
  bare: BareEngine,
  { kind, manifest }: Load,
  count: number,
  cores: number,
): Promise<number> {
  const manifests = Array.from({ length: count }, (_, index) => manifest(`bare-${kind.singular}-${index}`));
  const started = performance.now();
  const update = (one: Manifest) => bare.up(stackName(kind, objectKey(one.metadata)), programOf(kind, one));
  await forEachAtOnce(manifests, update, cores);
  return performance.now() - started;
}

function figuresOf({ what, count, perSecond }: Load, operatorMs: number, bareMs: number, sample: number): Figure[] {
  const byBare = `the bare engine, ${count} in proportion to ${sample}`;
  return [
    {
      what: `${count} ${what}`,
      ...seconds(operatorMs),
      against: beside(byBare, seconds((bareMs * count) / sample)),
    },
    { what: `${what} a second`, value: count / (operatorMs / 1000), unit: "/s", mark: atLeast(perSecond) },
  ];
}
