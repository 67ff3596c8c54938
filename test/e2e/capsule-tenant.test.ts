import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { LiveObject, Manifest, ResourceType } from "../../providers/kubernetes/client";
import { eventually } from "../../src/testing/eventually";
import { controllerReference, type KindObject } from "../../stacks/contract/object";
import { removeAdmission } from "../admission/leftovers";
import { removeUntilGone, untilGone, untilReady } from "./conditions";
import { kubectl, noKubectl } from "./kubectl";
import {
  CAPSULE_TENANT,
  capsuleTenant,
  LIMIT_RANGE,
  NETWORK_POLICY,
  namespace,
  RESOURCE_QUOTA,
  ROLE_BINDING,
  sampleFile,
  uniqueName,
} from "./manifests";
import { apply, client, create, edit, find, get, remove } from "./objects";
import { useOperator } from "./operator";

afterAll(() => removeAdmission(client)); // once the operator has ended
useOperator({ args: ["--admission-port", "0"] });

const MADE = [LIMIT_RANGE, NETWORK_POLICY, RESOURCE_QUOTA, ROLE_BINDING];

/** A namespace that a tenant's owner has made, as admission leaves it. */
const labelled = (name: string, tenant: string) =>
  namespace(name, { labels: { "capsule.clastix.io/tenant": tenant, team: "blue" } });

/** What a tenant has in a namespace: `LimitRange capsule-oil-0` and so on. */
async function contents(name: string, tenant: string): Promise<string[]> {
  const lists = await Promise.all(
    MADE.map((type) => client.list(type, { namespace: name, labelSelector: `capsule.clastix.io/tenant=${tenant}` })),
  );
  return lists.flatMap(({ items }) => items.map(({ kind, metadata }) => `${kind} ${metadata.name}`)).sort();
}

/** Waits until the tenant is Ready with these namespaces. */
function untilNamespaces(tenant: Manifest, namespaces: string[]): Promise<LiveObject> {
  return eventually(async () => {
    const object = await untilReady(tenant);
    expect((object.status as { namespaces?: string[] }).namespaces ?? []).toEqual(namespaces);
    return object;
  });
}

const ref = (type: ResourceType, name: string, namespace: string) => ({
  apiVersion: type.apiVersion,
  kind: type.kind,
  metadata: { name, namespace },
});

describe("the sample oil", () => {
  const { file, manifest } = sampleFile("capsule-tenant");

  beforeAll(async () => {
    await apply(manifest);
    for (const name of ["oil-development", "oil-staging"]) await create(labelled(name, "oil"));
  });

  it("puts its policies, quotas and bindings into each namespace with its label", async () => {
    const object = await untilNamespaces(manifest, ["oil-development", "oil-staging"]);
    expect(object.status).toMatchObject({ size: 2 });
    for (const name of ["oil-development", "oil-staging"]) {
      await eventually(async () => {
        expect(await contents(name, "oil")).toEqual([
          "LimitRange capsule-oil-0",
          "NetworkPolicy capsule-oil-0",
          "ResourceQuota capsule-oil-0",
          "ResourceQuota capsule-oil-1",
          "ResourceQuota capsule-oil-2",
          "RoleBinding capsule-oil-0",
          "RoleBinding capsule-oil-1",
        ]);
        expect((await get(namespace(name))).metadata).toMatchObject({
          labels: { "capsule.clastix.io/tenant": "oil", team: "blue" },
          annotations: { "scheduler.alpha.kubernetes.io/node-selector": "kubernetes.io/os=linux" },
        });
      });
    }
  });

  it.skipIf(noKubectl)("is shown by kubectl with quota, count, owner and node selector", async () => {
    expect(await kubectl(["apply", "--dry-run=server", "-f", file])).toMatchObject({ exitCode: 0 });
    const [, row = ""] = (await kubectl(["get", "tnt", "oil"])).stdout.split("\n");
    expect(row.split(/\s{2,}/).slice(0, 7)).toEqual([
      "oil",
      "3",
      "2",
      "alice",
      "False",
      '{"kubernetes.io/os":"linux"}',
      "True",
    ]);
  });

  it("lets its owner work in the namespaces, within the quotas", async () => {
    const resourceAttributes = { namespace: "oil-staging", verb: "create", group: "apps", resource: "deployments" };
    const body = {
      apiVersion: "authorization.k8s.io/v1",
      kind: "SubjectAccessReview",
      spec: { user: "alice", resourceAttributes },
    };
    // The API server sees a binding a moment after it was made.
    await eventually(async () => {
      const review = await client.json("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", { body });
      expect(review).toMatchObject({ status: { allowed: true } });
    });
  });

  it("takes its namespaces with it when it is deleted", async () => {
    await removeUntilGone(manifest);
    await untilGone(namespace("oil-development"));
    await untilGone(namespace("oil-staging"));
  });
});

describe("a tenant", () => {
  const name = uniqueName("gas");
  const [first, second] = [`${name}-a`, `${name}-b`];
  const limits = (cpu: string) => ({ limits: [{ type: "Container" as const, max: { cpu } }] });
  const tenant = capsuleTenant(name, { limitRanges: [limits("1")] });
  const limitRange = (index: number, at = first) => ref(LIMIT_RANGE, `capsule-${name}-${index}`, at);
  const maxOf = async (index: number) =>
    ((await get(limitRange(index))).spec as { limits: { max: { cpu: string } }[] }).limits[0]?.max.cpu;

  beforeAll(async () => {
    await create(labelled(first, name));
    await apply(tenant);
    await untilNamespaces(tenant, [first]);
  });

  it("takes in a namespace that gets its label", async () => {
    await create(namespace(second));
    await edit(namespace(second), { metadata: { labels: { "capsule.clastix.io/tenant": name } } });
    await untilNamespaces(tenant, [first, second]);
    await eventually(async () => expect(await find(limitRange(0, second))).toHaveProperty("metadata.uid"));
  });

  it("changes, lengthens and shortens what is there as its lists do", async () => {
    const { uid } = (await get(limitRange(0))).metadata;
    await apply(capsuleTenant(name, { limitRanges: [limits("2"), limits("3")] }));
    await untilReady(tenant);
    expect([await maxOf(0), await maxOf(1)]).toEqual(["2", "3"]);
    expect((await get(limitRange(0))).metadata).toMatchObject({
      uid,
      labels: { "capsule.clastix.io/limit-range": "0" },
    });

    await apply(capsuleTenant(name, { limitRanges: [limits("4")], resourceQuotas: [{ hard: { pods: "5" } }] }));
    await untilReady(tenant);
    expect(await maxOf(0)).toBe("4");
    expect(await find(limitRange(1))).toBeUndefined();
    expect(await find(ref(RESOURCE_QUOTA, `capsule-${name}-0`, second))).toHaveProperty("metadata.uid");
  });

  it("has another quota where scopes change, which the API server does not let anyone change", async () => {
    const quota = ref(RESOURCE_QUOTA, `capsule-${name}-0`, first);
    await apply(
      capsuleTenant(name, {
        limitRanges: [limits("4")],
        resourceQuotas: [{ hard: { pods: "5" }, scopes: ["BestEffort"] }],
      }),
    );
    await untilReady(tenant);
    expect((await get(quota)).spec).toMatchObject({ scopes: ["BestEffort"] });
  });

  it("puts back what is edited or deleted", async () => {
    await edit(limitRange(0), { spec: { limits: [{ type: "Container", max: { cpu: "64" } }] } });
    await remove(ref(ROLE_BINDING, `capsule-${name}-0`, second));
    await eventually(async () => {
      expect(await maxOf(0)).toBe("4");
      expect(await find(ref(ROLE_BINDING, `capsule-${name}-0`, second))).toHaveProperty("metadata.uid");
    });
  });

  it("keeps a namespace whose label alone a user took off", async () => {
    await edit(namespace(second), { metadata: { labels: { "capsule.clastix.io/tenant": null, mine: "yes" } } });
    await eventually(async () => {
      expect((await get(namespace(second))).metadata.labels).toMatchObject({
        "capsule.clastix.io/tenant": name,
        mine: "yes",
      });
    });
  });

  it("releases a namespace that lost both its labels, and gives back what it set there", async () => {
    await untilReady(tenant);
    await edit(namespace(second), {
      metadata: { labels: { "capsule.clastix.io/tenant": null, "kindstack.dev/owner-uid": null } },
    });
    await eventually(async () => {
      const { labels, deletionTimestamp } = (await get(namespace(second))).metadata;
      expect(Object.keys(labels ?? {}).sort()).toEqual(["kubernetes.io/metadata.name", "mine"]);
      expect(deletionTimestamp).toBeUndefined();
      expect(await contents(second, name)).toEqual([]);
    });
    await untilNamespaces(tenant, [first]);
  });

  it("continues when one of its namespaces is deleted", async () => {
    const third = `${name}-c`;
    await create(labelled(third, name));
    await untilNamespaces(tenant, [first, third]);
    await removeUntilGone(namespace(third));
    await untilNamespaces(tenant, [first]);
  });

  it("leaves its namespaces when it is deleted with the policy Orphan", async () => {
    await edit(tenant, { metadata: { annotations: { "kindstack.dev/deletion-policy": "Orphan" } } });
    await remove(tenant);
    await untilGone({ ...tenant, kind: CAPSULE_TENANT.kind });
    expect((await get(namespace(first))).metadata.deletionTimestamp).toBeUndefined();
    for (const left of [first, second]) await remove(namespace(left));
  });
});

describe("a tenant that is restored from a backup, or made again after its finalizer was removed by force", () => {
  it.each(["its namespaces", "itself"])(
    "has its namespaces again, with the backup's marks, when first come %s",
    async (first) => {
      const [name, dev] = [uniqueName("restored"), uniqueName("restored-dev")];
      const wanted = capsuleTenant(name);
      await apply(wanted);
      await create(labelled(dev, name));
      const { metadata: former } = await untilNamespaces(wanted, [dev]);
      const { labels = {}, annotations = {} } = (await get(namespace(dev))).metadata;
      // As backups have it of releases that applied references.
      const ownerReferences = [controllerReference({ ...wanted, metadata: former } as KindObject)];
      const backup = { ...namespace(dev), metadata: { name: dev, labels, annotations, ownerReferences } };

      await edit(wanted, { metadata: { finalizers: null, annotations: { "kindstack.dev/paused": "true" } } });
      await removeUntilGone(wanted);
      await removeUntilGone(namespace(dev));

      const steps = [() => create(backup), () => apply(wanted)];
      for (const step of first === "itself" ? steps.reverse() : steps) await step();
      const { metadata } = await untilNamespaces(wanted, [dev]);
      const live = await eventually(async () => {
        const found = await get(namespace(dev));
        expect(found.metadata.labels).toMatchObject({ "kindstack.dev/owner-uid": metadata.uid });
        return found;
      });
      expect(live.metadata.ownerReferences).toBeUndefined();
      await eventually(async () => expect(await contents(dev, name)).not.toEqual([]));
      await remove(wanted);
      await untilGone(namespace(dev));
    },
  );
});
