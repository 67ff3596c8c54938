import { randomUUID } from "node:crypto";
import type { KubernetesClient, ResourceType } from "../providers/kubernetes/client";
import type { StackEngine } from "../src/automation/engine";
import { MAX_REPAIRS_PER_MINUTE } from "../src/watcher/contest";
import { parseObject } from "../stacks/contract/kind";
import { type KindObject, stackName } from "../stacks/contract/object";
import { tenant } from "../stacks/tenant/kind";
import type { TenantSpec } from "../stacks/tenant/schema";
import type { BenchCluster } from "./cluster";
import { isReady, type Round } from "./one-object";
import { watchFor } from "./watch";

/**
 * What somebody deleted, put back both ways, in turns: by the operator, which has to notice it, and by one bare update
 * with refresh of the same program on a stack of its own.
 *
 * @param progress called before each round
 */
export async function measureRepair(
  cluster: BenchCluster,
  engine: StackEngine,
  rounds: number,
  progress: (round: number) => void,
): Promise<Round[]> {
  const { client } = cluster;
  const tenants = await client.resourceType("multitenancy.codereliant.io/v1", "Tenant");
  const bindings = await client.resourceType("rbac.authorization.k8s.io/v1", "RoleBinding");
  // Who has to be put right more often is taken to be fought over, and has to wait.
  const names = Array.from({ length: Math.ceil(rounds / MAX_REPAIRS_PER_MINUTE) }, (_, index) => `repaired-${index}`);
  for (const name of names) {
    const { apiVersion, kind, spec } = tenantObject(name);
    const { seen } = await watchFor(client, tenants, "", (object) => object.metadata.name === name && isReady(object));
    await client.create(tenants, { apiVersion, kind, metadata: { name }, spec });
    await seen;
  }
  const bare = tenantObject("bare-repaired");
  await update(engine, bare, false);

  const results: Round[] = [];
  for (let round = 0; round < rounds; round++) {
    progress(round);
    const operator = await throughOperator(client, bindings, names[round % names.length] ?? "");
    await client.delete(bindings, bindingOf(bare.metadata.name), bare.metadata.name);
    results.push({ operator, cli: await update(engine, bare, true) });
  }
  await engine.destroy(stackName(tenant, bare.metadata.name));
  return results;
}

async function throughOperator(client: KubernetesClient, bindings: ResourceType, name: string): Promise<number> {
  const before = await client.get(bindings, bindingOf(name), name);
  const { seen } = await watchFor(
    client,
    bindings,
    name,
    ({ metadata }) => metadata.name === bindingOf(name) && metadata.uid !== before?.metadata.uid,
  );
  const started = performance.now();
  await client.delete(bindings, bindingOf(name), name);
  await seen;
  return performance.now() - started;
}

async function update(engine: StackEngine, object: KindObject<TenantSpec>, refresh: boolean): Promise<number> {
  const owner = { uid: object.metadata.uid, description: "bench" };
  const started = performance.now();
  const result = await engine.up(
    stackName(tenant, object.metadata.name),
    () => tenant.program(object, { owner, owned: [], recorded: new Set(), observed: [] }),
    { refresh },
  );
  if (result.outcome !== "succeeded") throw new Error(`the bare update failed: ${JSON.stringify(result.failures)}`);
  return performance.now() - started;
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
