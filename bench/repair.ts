import { randomUUID } from "node:crypto";
import type { LiveObject } from "../providers/kubernetes/client";
import { MAX_REPAIRS_PER_MINUTE } from "../src/controller/drift-backoff";
import { parseObject } from "../stacks/contract/kind";
import { type KindObject, stackName } from "../stacks/contract/object";
import { tenant } from "../stacks/tenant/kind";
import type { TenantSpec } from "../stacks/tenant/schema";
import { type BareCli, withBareCli } from "./bare-cli";
import { type BenchCluster, type BenchContext, withBenchCluster } from "./cluster";
import { isReady, ObjectWatch } from "./object-watch";
import { type Section, summary } from "./results";

const ROUNDS = 10;
const QUICK_ROUNDS = 2;

/**
 * A deleted resource restored both ways, in turns: by the operator, which has to notice it, and by one bare update
 * with refresh of the same program on a stack of its own.
 */
export async function repair(context: BenchContext): Promise<Section> {
  const rounds = context.quick ? QUICK_ROUNDS : ROUNDS;
  return withBenchCluster(context, async (cluster) => {
    const operator = await cluster.startOperator();
    const times = await withBareCli(context, cluster, (bare) => measure(context, cluster, bare, rounds));
    await operator.stop();
    return {
      id: "repair",
      title: "One RoleBinding of a Tenant, deleted by a user",
      notes: [`${rounds} rounds in turns; the median, with the least and the most.`],
      figures: [
        {
          what: "deleted → back again",
          unit: "s",
          ...summary(times.map((time) => time.operator / 1000)),
          against: {
            what: "one bare CLI update with refresh",
            ...summary(times.map((time) => time.bare / 1000)),
            measured: "here",
          },
          mark: { of: "ratio", at: "most", limit: 1.5 },
        },
      ],
    };
  });
}

async function measure(
  { signal, detail }: BenchContext,
  { client }: BenchCluster,
  bare: BareCli,
  rounds: number,
): Promise<{ operator: number; bare: number }[]> {
  const tenants = await client.resourceType("multitenancy.codereliant.io/v1", "Tenant");
  const bindings = await client.resourceType("rbac.authorization.k8s.io/v1", "RoleBinding");
  // An object that is repaired more often counts as in conflict, and waits.
  const names = Array.from({ length: Math.ceil(rounds / MAX_REPAIRS_PER_MINUTE) }, (_, index) => `repaired-${index}`);
  const tenantWatch = await ObjectWatch.open(client, tenants, signal);
  const watch = await ObjectWatch.open(client, bindings, signal);
  try {
    for (const name of names) {
      const { apiVersion, kind, spec } = tenantObject(name);
      await client.create({ apiVersion, kind, metadata: { name }, spec });
    }
    await tenantWatch.until(names, isReady);
    const alone = tenantObject("bare-repaired");
    await update(bare, alone, false);

    const times: { operator: number; bare: number }[] = [];
    for (let round = 0; round < rounds; round++) {
      detail(`round ${round + 1} of ${rounds}`);
      const name = names[round % names.length] ?? "";
      const before = (await client.get(bindings, bindingOf(name), name))?.metadata.uid;
      const isBack = (object: LiveObject | undefined) => object !== undefined && object.metadata.uid !== before;
      const started = performance.now();
      await client.delete(bindings, bindingOf(name), name);
      const { last } = await watch.until([`${name}/${bindingOf(name)}`], isBack);
      await client.delete(bindings, bindingOf(alone.metadata.name), alone.metadata.name);
      times.push({ operator: last - started, bare: await update(bare, alone, true) });
    }
    return times;
  } finally {
    tenantWatch.close();
    watch.close();
  }
}

function update(bare: BareCli, object: KindObject<TenantSpec>, refresh: boolean): Promise<number> {
  const owner = { uid: object.metadata.uid, description: "bench" };
  return bare.up(
    stackName(tenant, object.metadata.name),
    () => tenant.program(object, { owner, owned: [], recorded: new Set(), watched: [] }),
    { refresh },
  );
}

/** A Tenant with one namespace of its own name and two bindings. */
function tenantObject(name: string): KindObject<TenantSpec> {
  return parseObject(tenant, {
    apiVersion: "multitenancy.codereliant.io/v1",
    kind: "Tenant",
    metadata: { name, uid: randomUUID(), resourceVersion: "0", generation: 1 },
    spec: { adminEmail: "a@example.com", adminGroups: ["admins"], userGroups: ["users"], namespaces: [name] },
  });
}

function bindingOf(namespace: string): string {
  return `${namespace}-edit-rb`;
}
