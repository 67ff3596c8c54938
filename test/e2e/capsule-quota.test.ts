import { setTimeout as delay } from "node:timers/promises";
import { beforeAll, describe, expect, it } from "vitest";
import { ApiError, type LiveObject, type Manifest } from "../../providers/kubernetes/client";
import { eventually } from "./eventually";
import {
  apply,
  CONFIG_MAP,
  capsuleTenant,
  client,
  create,
  edit,
  namespace,
  RESOURCE_QUOTA,
  uniqueName,
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

function configMap(name: string, namespace: string): Manifest {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace } };
}

/** Tries until it succeeds or is told to stop; as controllers do that are refused. */
async function insist(manifest: Manifest, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      await create(manifest);
      return;
    } catch (error) {
      if (!(error instanceof ApiError) || (error.status !== 403 && error.status !== 409)) throw error;
      await delay(50 + 50 * Math.random());
    }
  }
}

/** Waits until the quotas of a tenant are counted, enforced as they are granted, and as a test wants them. */
function untilQuotas(tenant: string, wanted: (quotas: Quota[]) => void): Promise<void> {
  return eventually(async () => {
    const quotas = await quotasOf(tenant);
    expect(quotas.filter(({ granted, enforced }) => granted !== enforced)).toEqual([]);
    wanted(quotas);
  });
}

describe("the quota of a tenant with three namespaces", () => {
  const tenant = uniqueName("quota");
  const namespaces = [0, 1, 2].map((index) => `${tenant}-${index}`);
  /** So many ConfigMaps may be there; each namespace has one of the cluster's own. */
  const HARD = 33;

  beforeAll(async () => {
    for (const name of namespaces) await apply(namespace(name, { labels: { "capsule.clastix.io/tenant": tenant } }));
    await apply(capsuleTenant(tenant, { resourceQuotas: [{ hard: { [RESOURCE]: HARD } }] }));
  });

  it("is shared out among them when they have been counted", async () => {
    await untilQuotas(tenant, (quotas) => {
      expect(quotas.map(({ used }) => used)).toEqual([1, 1, 1]);
      expect(quotas.map(({ granted }) => granted)).toEqual([11, 11, 11]);
    });
  });

  it("is never exceeded while they are hammered at once, one harder than the others, and is used up", async () => {
    const end = new AbortController();
    const totals: number[] = [];
    const watching = (async () => {
      while (!end.signal.aborted) {
        const { items } = await client.list(CONFIG_MAP);
        totals.push(items.filter(({ metadata }) => metadata.namespace?.startsWith(tenant)).length);
        totals.push(sum((await quotasOf(tenant)).map(({ used }) => used)));
        await delay(25);
      }
    })();
    const asked = [30, 10, 5].flatMap((count, index) =>
      Array.from({ length: count }, (_, item) =>
        insist(configMap(`hammer-${item}`, namespaces[index] as string), end.signal),
      ),
    );
    await untilQuotas(tenant, (quotas) => {
      expect(sum(quotas.map(({ used }) => used))).toBe(HARD);
      // The source's way: when the sum is reached, each may use what it does.
      expect(quotas.filter(({ granted, used }) => granted !== used)).toEqual([]);
    });
    await delay(500); // those who still ask are refused
    end.abort();
    await Promise.all([watching, ...asked]);
    expect(Math.max(...totals)).toBe(HARD);
  });

  it("is told in annotations of each of them", async () => {
    await eventually(async () => {
      const { items } = await client.list(RESOURCE_QUOTA, { labelSelector: `capsule.clastix.io/tenant=${tenant}` });
      for (const { metadata } of items) {
        expect(metadata.annotations).toMatchObject({
          "quota.capsule.clastix.io/used-count_configmaps": String(HARD),
          "quota.capsule.clastix.io/hard-count_configmaps": String(HARD),
        });
      }
    });
  });

  it("is free again for another when one of them frees it", async () => {
    const [first = "", , last = ""] = namespaces;
    await client.json("DELETE", `/api/v1/namespaces/${first}/configmaps`, {});
    const created = Array.from({ length: 10 }, (_, index) =>
      insist(configMap(`late-${index}`, last), AbortSignal.timeout(30_000)),
    );
    await Promise.all(created);
    const { items } = await client.list(CONFIG_MAP, { namespace: last });
    expect(items.filter(({ metadata }) => metadata.name.startsWith("late-"))).toHaveLength(10);
  });

  it("that is lowered below what is used leaves no one anything more", async () => {
    await apply(capsuleTenant(tenant, { resourceQuotas: [{ hard: { [RESOURCE]: 5 } }] }));
    await untilQuotas(tenant, (quotas) => {
      expect(quotas.filter(({ granted, used }) => granted !== used)).toEqual([]);
    });
    await expect(create(configMap("too-many", namespaces[1] as string))).rejects.toThrow(/exceeded quota/);
  });

  it("is put back when a user raises it in a namespace", async () => {
    const [name = ""] = namespaces;
    const quota = { kind: "ResourceQuota", metadata: { name: `capsule-${tenant}-0`, namespace: name } };
    await edit(quota, { spec: { hard: { [RESOURCE]: "1000" } } });
    await untilQuotas(tenant, (quotas) => {
      expect(quotas.filter(({ granted, used }) => granted !== used)).toEqual([]);
    });
  });
});
