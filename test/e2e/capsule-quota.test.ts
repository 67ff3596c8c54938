import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { ApiError, type LiveObject, type Manifest } from "../../providers/kubernetes/client";
import { formatAmount, parseAmount } from "../../stacks/capsule-tenant/quantity";
import { eventually } from "./eventually";
import {
  apply,
  CONFIG_MAP,
  capsuleTenant,
  client,
  create,
  edit,
  get,
  namespace,
  RESOURCE_QUOTA,
  uniqueName,
  untilReady,
} from "./objects";
import { useOperator } from "./operator";

useOperator();

const RESOURCE = "count/configmaps";

interface Quota {
  namespace: string;
  granted: number;
  enforced: number;
  used: number;
}

/** What the ResourceQuotas of a tenant say of {@link RESOURCE}, by namespace. */
async function quotasOf(tenant: string): Promise<Quota[]> {
  const { items } = await client.list(RESOURCE_QUOTA, { labelSelector: `capsule.clastix.io/tenant=${tenant}` });
  return items.map((item) => {
    const { spec, status } = item as LiveObject & { spec?: Amounts; status?: Amounts };
    return {
      namespace: item.metadata.namespace ?? "",
      granted: Number(spec?.hard?.[RESOURCE] ?? Number.NaN),
      enforced: Number(status?.hard?.[RESOURCE] ?? Number.NaN),
      used: Number(status?.used?.[RESOURCE] ?? Number.NaN),
    };
  });
}
interface Amounts {
  hard?: Record<string, string>;
  used?: Record<string, string>;
}
const sum = (numbers: number[]) => numbers.reduce((total, number) => total + number, 0);

/** A tenant with so many ConfigMaps for its namespaces together, of which each has the cluster's own one already. */
async function tenantWith(hard: number, namespaces: number): Promise<{ tenant: string; namespaces: string[] }> {
  const tenant = uniqueName("quota");
  const names = Array.from({ length: namespaces }, (_, index) => `${tenant}-${index}`);
  await apply(capsuleTenant(tenant, { resourceQuotas: [{ hard: { [RESOURCE]: hard } }] }));
  for (const name of names) await apply(namespace(name, { labels: { "capsule.clastix.io/tenant": tenant } }));
  await eventually(async () => {
    const quotas = await quotasOf(tenant);
    expect(quotas).toHaveLength(namespaces);
    expect(sum(quotas.map(({ enforced }) => enforced))).toBe(hard);
    expect(quotas.every(({ used, enforced, granted }) => used === 1 && enforced === granted)).toBe(true);
  });
  return { tenant, namespaces: names };
}

function configMap(name: string, namespace: string): Manifest {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace } };
}

/** Tries until it succeeds or `until` has come; as controllers do that are refused. */
async function insist(manifest: Manifest, until: number): Promise<"created" | "refused"> {
  for (;;) {
    try {
      await create(manifest);
      return "created";
    } catch (error) {
      if (!(error instanceof ApiError) || (error.status !== 403 && error.status !== 409)) throw error;
      if (Date.now() > until) return "refused";
      await delay(50 + 50 * Math.random());
    }
  }
}

describe("the quota of a tenant", () => {
  it("is never exceeded by three namespaces that are hammered at once, and is used up", async () => {
    const { tenant, namespaces } = await tenantWith(33, 3);
    const deadline = Date.now() + 20_000;
    let running = true;
    const seen: number[] = [];
    const watch = (async () => {
      while (running) {
        const { items } = await client.list(CONFIG_MAP);
        seen.push(items.filter(({ metadata }) => metadata.namespace?.startsWith(tenant)).length);
        seen.push(sum((await quotasOf(tenant)).map(({ used }) => used)));
        await delay(50);
      }
    })();
    let left = 30;
    const started = Date.now();
    const outcomes = await Promise.all(
      namespaces.flatMap((name) =>
        Array.from({ length: 20 }, async (_, index) => {
          const outcome = await insist(configMap(`hammer-${index}`, name), deadline);
          if (outcome === "created" && --left === 0) console.log(`used up after ${Date.now() - started} ms`);
          return outcome;
        }),
      ),
    );
    running = false;
    await watch;
    console.log(Math.max(...seen), outcomes.filter((o) => o === "created").length, await quotasOf(tenant));
    expect(Math.max(...seen)).toBe(33);
    expect(outcomes.filter((outcome) => outcome === "created")).toHaveLength(30);
    await eventually(async () => {
      const quotas = await quotasOf(tenant);
      expect(quotas.every(({ granted, used, enforced }) => granted === used && enforced === used)).toBe(true);
    });
  });
});
