import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { userConfig } from "../../bench/users";
import { ApiError, KubernetesClient, type LiveObject, type Manifest } from "../../providers/kubernetes/client";
import { formatQuantity } from "../../providers/kubernetes/quantity";
import { eventually } from "../../src/testing/eventually";
import { usageOf } from "../../stacks/kinds/capsule-tenant/object-usage";
import { parseAmount } from "../../stacks/kinds/capsule-tenant/quantity";
import { removeAdmission } from "../admission/leftovers";
import { controlPlane } from "../control-plane";
import { CONFIG_MAP, capsuleTenant, NAMESPACE, namespace, POD, RESOURCE_QUOTA, uniqueName } from "./manifests";
import { apply, client, create, get } from "./objects";
import { useOperator } from "./operator";

afterAll(() => removeAdmission(client)); // once the operator has ended
useOperator({ args: ["--admission-port", "0"] });

const RESOURCE = "count/configmaps";
/** So many requests of each kind; `KINDSTACK_TRIES=100` to look for rare refusals. */
const ROUNDS = Number(process.env.KINDSTACK_TRIES ?? 2);

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
type CountedQuota = LiveObject & { spec: Amounts; status?: Amounts };
interface Amounts {
  hard?: Record<string, string>;
  used?: Record<string, string>;
}
const sum = (numbers: number[]) => numbers.reduce((total, number) => total + number, 0);

function configMap(name: string, namespace: string): Manifest {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace } };
}

/** Tries until it succeeds or is told to stop; as controllers do that are refused. */
async function insist(manifest: Manifest, signal?: AbortSignal): Promise<void> {
  while (!signal?.aborted) {
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

/** All is given out. A namespace that was counted before its first ConfigMap keeps a share that differs by little. */
function expectShares(quotas: Quota[], count: number, hard: number): void {
  expect(quotas).toHaveLength(count);
  expect(sum(quotas.map(({ granted }) => granted))).toBe(hard);
  for (const { granted } of quotas) expect(granted).toBeGreaterThanOrEqual(hard / count / 2);
}

describe("the shares of a tenant", () => {
  const tenant = uniqueName("shares");
  const names = [0, 1, 2].map((index) => `${tenant}-${index}`);

  it("add up to its amount when namespaces come while the first are counted, and when one has gone", async () => {
    await apply(capsuleTenant(tenant, { resourceQuotas: [{ hard: { [RESOURCE]: "80" } }] }));
    for (const name of names) await apply(namespace(name, { labels: { "capsule.clastix.io/tenant": tenant } }));
    await untilQuotas(tenant, (quotas) => expectShares(quotas, 3, 80));
    await client.delete(NAMESPACE, names[1] as string);
    await untilQuotas(tenant, (quotas) => expectShares(quotas, 2, 80));
  });
});

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
      expectShares(quotas, 3, HARD);
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

  it("is free again for another when one of them frees it", async () => {
    const [first = "", , last = ""] = namespaces;
    await client.json("DELETE", `/api/v1/namespaces/${first}/configmaps`, {});
    const created = Array.from({ length: 10 }, (_, index) => insist(configMap(`late-${index}`, last)));
    await Promise.all(created);
    const { items } = await client.list(CONFIG_MAP, { namespace: last });
    expect(items.filter(({ metadata }) => metadata.name.startsWith("late-"))).toHaveLength(10);
  });
});

describe("a request that is larger than its namespace's share", () => {
  /** A tenant with two namespaces whose quotas are counted, its owner, and what is used in both together. */
  async function openTenant(hard: Record<string, string | number>) {
    const name = uniqueName("room");
    const namespaces = ["a", "b"].map((suffix) => `${name}-${suffix}`);
    for (const one of namespaces) await apply(namespace(one, { labels: { "capsule.clastix.io/tenant": name } }));
    await apply(capsuleTenant(name, { resourceQuotas: [{ hard }] }));
    const { kubeconfig } = controlPlane();
    const owner = new KubernetesClient(await userConfig(path.dirname(kubeconfig), name, "capsule.clastix.io"));
    const quotas = async () =>
      (await client.list(RESOURCE_QUOTA, { labelSelector: `capsule.clastix.io/tenant=${name}` }))
        .items as CountedQuota[];
    const used = async (resource: string) => total((await quotas()).map(({ status }) => status?.used?.[resource]));
    const granted = async (resource: string) => total((await quotas()).map(({ spec }) => spec.hard?.[resource]));
    // The owner has rights, and the API server asks the webhook: what it asks about is labelled with the namespace.
    await eventually(async () => {
      for (const [resource, amount] of Object.entries(hard)) expect(await granted(resource)).toBe(parseAmount(amount));
      for (const one of namespaces) await owner.apply(pod("probe", one), { dryRun: true });
    });
    return { name, namespaces: namespaces as [string, string], owner, used };
  }

  const total = (amounts: (string | undefined)[]) =>
    amounts.reduce((sum, amount = "0") => sum + parseAmount(amount), 0n);

  function pod(name: string, namespace: string, cpu = "0"): Manifest {
    const containers = [{ name: "app", image: "nginx", resources: { requests: { cpu } } }];
    return { apiVersion: "v1", kind: "Pod", metadata: { name, namespace }, spec: { containers } };
  }

  function claim(name: string, namespace: string, storage: string): Manifest {
    const spec = { accessModes: ["ReadWriteOnce"], resources: { requests: { storage } } };
    return { apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name, namespace }, spec };
  }

  function deployment(name: string, namespace: string, replicas: number): Manifest {
    const labels = { app: name };
    const template = { metadata: { labels }, spec: { containers: [{ name: "app", image: "nginx" }] } };
    const spec = { replicas, selector: { matchLabels: labels }, template };
    return { apiVersion: "apps/v1", kind: "Deployment", metadata: { name, namespace }, spec };
  }

  it("succeeds at once as far as the tenant has it left, again and again, and is refused beyond that", async () => {
    const { namespaces, owner, used } = await openTenant({ "requests.cpu": 4, "requests.storage": "10Gi" });
    const [a, b] = namespaces;
    // A dry run makes no room.
    await expect(owner.apply(pod("large", a, "3500m"), { dryRun: true })).rejects.toThrow(/exceeded quota/);
    for (let round = 0; round < ROUNDS; round++) {
      const target = round % 2 === 0 ? a : b;
      await owner.create(pod("large", target, "3500m"));
      await owner.create(claim("large", target, "9Gi"));
      for (const other of [a, b]) {
        await expect(owner.create(pod("too-large", other, "600m"))).rejects.toThrow(/exceeded quota/);
        await expect(owner.create(claim("too-large", other, "2Gi"))).rejects.toThrow(/exceeded quota/);
      }
      const small = target === a ? b : a;
      await owner.create(pod("small", small, "500m"));
      await eventually(async () => expect(await used("requests.cpu")).toBe(parseAmount(4)));
      await owner.delete(POD, "large", target);
      await owner.delete(POD, "small", small);
      await client.json("DELETE", `/api/v1/namespaces/${target}/persistentvolumeclaims`, {});
      await eventually(async () => {
        expect(await used("requests.cpu")).toBe(0n);
        expect(await used("requests.storage")).toBe(0n);
      });
    }
    await owner.close();
  });

  it("of many at once: two Deployments use up the whole, and together never more", async () => {
    const { namespaces, used, owner } = await openTenant({ pods: 10 });
    const seen: bigint[] = [];
    for (const one of namespaces) await create(deployment("web", one, 5));
    await eventually(async () => {
      seen.push(await used("pods"));
      expect(seen.at(-1)).toBe(parseAmount(10));
    });
    const [a] = namespaces;
    await apply(deployment("web", a, 8));
    await eventually(async () => {
      const { status } = (await get(deployment("web", a, 8))) as { status?: { conditions?: object[] } };
      expect(status?.conditions).toContainEqual(expect.objectContaining({ type: "ReplicaFailure", status: "True" }));
    });
    seen.push(await used("pods"));
    for (const one of namespaces) expect((await client.list(POD, { namespace: one })).items).toHaveLength(5);
    expect(seen.filter((amount) => amount > parseAmount(10))).toEqual([]);
    await owner.close();
  });

  it("is taken for what the API server counts", async () => {
    const name = uniqueName("counted");
    await apply(namespace(name));
    const requests = { cpu: "100m", memory: "64Mi", "example.com/device": "2" };
    const limits = { ...requests, cpu: "1" };
    const app = { name: "app", image: "nginx", resources: { requests, limits } };
    const objects: [string, Manifest][] = [
      [
        "pods",
        {
          ...pod("web", name),
          spec: {
            containers: [app],
            initContainers: [
              { ...app, name: "sidecar", restartPolicy: "Always" },
              {
                ...app,
                name: "setup",
                resources: {
                  requests: { cpu: "3", memory: "1Mi", "ephemeral-storage": "1Gi" },
                  limits: { cpu: "3", memory: "1Mi" },
                },
              },
            ],
          },
        },
      ],
      ["services", { ...of("Service", name), spec: { type: "LoadBalancer", ports: [{ port: 80 }] } }],
      ["persistentvolumeclaims", claim("web", name, "1500M")],
      ["secrets", of("Secret", name)],
    ];
    const usage = objects.map(([resource, object]) => usageOf({ group: "", name: resource }, object));
    const resources = usage.flatMap((amounts) => [...amounts.keys()]);
    const hard = Object.fromEntries(resources.map((resource) => [resource, "100Gi"]));
    const quota = { ...of("ResourceQuota", name), spec: { hard } };
    await create(quota);
    const used = async () => ((await get(quota)) as CountedQuota).status?.used ?? {};
    await eventually(async () => expect(Object.keys(await used()).sort()).toEqual([...resources].sort()));
    const before = await used();
    for (const [, object] of objects) {
      await eventually(() => client.create(object)); // Pods when the namespace has its ServiceAccount
    }
    // Between two counts, the controller of quotas may set back what the API server has counted.
    await eventually(async () => {
      const after = await used();
      for (const [resource, amount] of usage.flatMap((amounts) => [...amounts])) {
        const counted = parseAmount(after[resource] ?? 0) - parseAmount(before[resource] ?? 0);
        expect([resource, formatQuantity(counted)]).toEqual([resource, formatQuantity(amount)]);
      }
    });
  });

  const of = (kind: string, namespace: string): Manifest => ({
    apiVersion: "v1",
    kind,
    metadata: { name: "web", namespace },
  });
});
