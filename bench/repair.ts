import { known, type LiveObject, type Manifest } from "../providers/kubernetes/client";
import { REVERTS_OF_CONFLICT } from "../src/controller/repairs";
import { stackName } from "../stacks/contract/object";
import { tenant } from "../stacks/kinds/tenant/kind";
import { type BareEngine, withBareEngine } from "./bare-engine";
import { type BenchCluster, type BenchContext, withBenchCluster } from "./cluster";
import { withOperator } from "./lifecycle";
import { isReady, ObjectWatch } from "./object-watch";
import { atMost, beside, type Section, seconds } from "./results";
import { programOf } from "./writers";

const TENANT = { apiVersion: "multitenancy.codereliant.io/v1", kind: "Tenant" };
const BINDING = { apiVersion: "rbac.authorization.k8s.io/v1", kind: "RoleBinding" };
const ROUNDS = 10;
const QUICK_ROUNDS = 2;

/**
 * How long rights are not as a Tenant has them. A deleted RoleBinding is restored both ways, alternately: by the operator,
 * which has to notice it, and by one bare update with refresh of the same program on a stack of its own. Then a group loses
 * its rights.
 */
export async function repair(context: BenchContext): Promise<Section> {
  const rounds = context.quick ? QUICK_ROUNDS : ROUNDS;
  return withBenchCluster(context, async (cluster) => {
    const { restored, dismissed } = await withOperator(context, cluster, cluster.startOperator, async () => ({
      restored: await withBareEngine(context, cluster, (bare) => measureRepairs(context, cluster, bare, rounds)),
      dismissed: await measureDismissals(context, cluster, rounds),
    }));
    return {
      id: "repair",
      title: "One RoleBinding of a Tenant",
      notes: [`${rounds} alternating rounds; the median, with the least and the most.`],
      figures: [
        {
          what: "deleted by a user → back again",
          ...seconds(restored.map((time) => time.operator)),
          against: beside("one bare update with refresh", seconds(restored.map((time) => time.bare))),
          mark: atMost(1.5, "ratio"),
        },
        { what: "a group taken out of the Tenant → without rights", ...seconds(dismissed) },
      ],
    };
  });
}

async function measureRepairs(
  { signal, detail }: BenchContext,
  { client }: BenchCluster,
  bare: BareEngine,
  rounds: number,
): Promise<{ operator: number; bare: number }[]> {
  // An object that is repaired more often counts as in conflict, and waits.
  const names = Array.from(
    { length: Math.ceil(rounds / (REVERTS_OF_CONFLICT - 1)) },
    (_, index) => `repaired-${index}`,
  );
  await ObjectWatch.during(client, TENANT, signal, async (watch) => {
    for (const name of names) await client.create(tenantManifest(name));
    await watch.until(names, isReady);
  });
  const alone = "bare-repaired";
  const program = programOf(tenant, tenantManifest(alone));
  const update = (refresh: boolean) => bare.up(stackName(tenant, alone), program, { refresh });
  await update(false);
  return ObjectWatch.during(client, BINDING, signal, async (watch) => {
    const times: { operator: number; bare: number }[] = [];
    for (let round = 0; round < rounds; round++) {
      detail(`round ${round + 1} of ${rounds}`);
      const name = names[round % names.length] ?? "";
      const before = (await known(client.get(BINDING, bindingOf(name), name)))?.metadata.uid;
      const isBack = (object: LiveObject | undefined) => object !== undefined && object.metadata.uid !== before;
      const started = performance.now();
      await client.delete(BINDING, bindingOf(name), name);
      const { last } = await watch.until([`${name}/${bindingOf(name)}`], isBack);
      await client.delete(BINDING, bindingOf(alone), alone);
      times.push({ operator: last - started, bare: await update(true) });
    }
    return times;
  });
}

/** @returns ms from the request that changes the Tenant until the group is no subject any more */
async function measureDismissals(
  { signal, detail }: BenchContext,
  { client }: BenchCluster,
  rounds: number,
): Promise<number[]> {
  const name = "dismissed";
  return ObjectWatch.during(client, BINDING, signal, async (watch) => {
    const untilUsersAre = (groups: string) =>
      watch.until([`${name}/${bindingOf(name)}`], (binding) => groupsOf(binding) === groups);
    const setUsers = (userGroups: string[]) => client.mergePatch(TENANT, name, undefined, { spec: { userGroups } });
    await client.create(tenantManifest(name));
    const times: number[] = [];
    for (let round = 0; round < rounds; round++) {
      detail(`dismissal ${round + 1} of ${rounds}`);
      await setUsers(["users", "dismissed"]);
      await untilUsersAre("users,dismissed");
      const started = performance.now();
      await setUsers(["users"]);
      const { last } = await untilUsersAre("users");
      times.push(last - started);
    }
    return times;
  });
}

function groupsOf(binding: LiveObject | undefined): string | undefined {
  const { subjects } = (binding ?? {}) as { subjects?: { name: string }[] };
  return subjects?.map((subject) => subject.name).join();
}

/** A Tenant with one namespace of its own name and two bindings. */
function tenantManifest(name: string): Manifest {
  return {
    ...TENANT,
    metadata: { name },
    spec: { adminEmail: "a@example.com", adminGroups: ["admins"], userGroups: ["users"], namespaces: [name] },
  };
}

function bindingOf(namespace: string): string {
  return `${namespace}-edit-rb`;
}
