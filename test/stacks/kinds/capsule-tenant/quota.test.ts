import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { LiveObject, Manifest, ObjectMeta } from "../../../../providers/kubernetes/client";
import { balanceQuotas } from "../../../../stacks/kinds/capsule-tenant/quota";
import { labelled, oilTenant, quotaIn } from "./objects";

const tenant = oilTenant({ resourceQuotas: [{ hard: { pods: 10, "requests.memory": "3Gi" } }] });

/** The ResourceQuota of a namespace, as counted by the API server. */
function quota(
  namespace: string,
  { hard, used }: { hard: Record<string, string>; used?: Record<string, string> },
  metadata: Partial<ObjectMeta> = {},
): LiveObject {
  return quotaIn(namespace, hard, used === undefined ? {} : { hard, used }, { resourceVersion: "7", ...metadata });
}
const labels = { "capsule.clastix.io/tenant": "oil", "capsule.clastix.io/resource-quota": "0" };
const hardOf = (manifest: Manifest | undefined) =>
  (manifest as { spec?: { hard: Record<string, string> } } | undefined)?.spec?.hard ?? {};
const none = { pods: "0", "requests.memory": "0" };

/** The namespaces of the objects that are not among them. */
function namespacesOf(objects: readonly LiveObject[]): LiveObject[] {
  const names = new Set(objects.flatMap(({ metadata }) => metadata.namespace ?? []));
  for (const { kind, metadata } of objects) if (kind === "Namespace") names.delete(metadata.name);
  return [...names].map((name) => labelled(name));
}

async function balance(
  owned: LiveObject[],
  { of = tenant, namespaces = namespacesOf(owned), memory = new Map<string, unknown>() } = {},
) {
  const manifests: Manifest[] = [];
  const again = await balanceQuotas(of, {
    memory,
    owned: [...namespaces, ...owned],
    apply: async (manifest, fieldManager) => {
      expect(fieldManager).toBe("kindstack-quota");
      manifests.push(manifest);
    },
  });
  return { manifests, again };
}
const written = async (...given: Parameters<typeof balance>) => (await balance(...given)).manifests;

describe("the balance of a tenant's quotas", () => {
  it("is written with what the tenant uses and may use, onto the version that was read", async () => {
    const used = { pods: "2", "requests.memory": "512Mi" };
    const [first, second, ...others] = await written([
      quota("oil-a", { hard: { pods: "2", "requests.memory": "512Mi" }, used }),
      quota("oil-b", { hard: none, used: none }),
    ]);
    expect(first).toEqual({
      apiVersion: "v1",
      kind: "ResourceQuota",
      metadata: {
        name: "capsule-oil-0",
        namespace: "oil-a",
        uid: "uid-of-oil-a",
        resourceVersion: "7",
        annotations: {
          "quota.capsule.clastix.io/used-pods": "2",
          "quota.capsule.clastix.io/hard-pods": "10",
          "quota.capsule.clastix.io/used-requests.memory": "512Mi",
          "quota.capsule.clastix.io/hard-requests.memory": "3Gi",
        },
      },
      spec: { hard: { pods: "6", "requests.memory": "1792Mi" } },
    });
    expect(second?.spec).toEqual({ hard: { pods: "4", "requests.memory": "1280Mi" } });
    expect(others).toEqual([]);
  });

  it.each([1, 20, 29, 30, 44, 57, 60, 200])(
    "is told in annotations that the API server takes, two for each resource, with a storage class of %d characters",
    async (length) => {
      const resources = ["persistentvolumeclaims", "requests.storage"].map(
        (name) => `${"s".repeat(length)}.storageclass.storage.k8s.io/${name}`,
      );
      const hard = Object.fromEntries(resources.map((resource) => [resource, "5"]));
      const of = oilTenant({ resourceQuotas: [{ hard }] });
      const [balanced] = await written([quota("oil-a", { hard: {}, used: {} })], { of });
      const names = Object.keys(balanced?.metadata.annotations ?? {});
      expect(names).toHaveLength(4);
      expect(names.filter((name) => !/^[a-z.]+[/][a-z0-9][-\w.]{0,61}[a-z0-9]$/.test(name))).toEqual([]);
    },
  );

  it("counts none that a user made with the tenant's marks: in another namespace, or of another name", async () => {
    const own = quota("oil-a", { hard: none, used: none });
    const used = { pods: "10", "requests.memory": "3Gi" };
    const forged = [
      quota("elsewhere", { hard: used, used }),
      quota("oil-a", { hard: used, used }, { name: "mine", uid: "mine" }),
    ];

    const [balanced, ...others] = await written([own, ...forged], { namespaces: namespacesOf([own]) });

    expect(others).toEqual([]);
    expect(hardOf(balanced)).toEqual({ pods: "10", "requests.memory": "3Gi" });
  });

  it("gives out what is free at once, though everybody has half of it in hand", async () => {
    const quotas = ["oil-a", "oil-b"].map((namespace) =>
      quota(namespace, { hard: { pods: "3", "requests.memory": "1536Mi" }, used: none }),
    );
    expect((await written(quotas)).map(hardOf)).toMatchObject([{ pods: "5" }, { pods: "5" }]);
  });

  it("lowers first", async () => {
    const manifests = await written([
      quota("oil-a", { hard: none, used: none }),
      quota("oil-b", { hard: { pods: "8", "requests.memory": "1Gi" }, used: none }),
    ]);
    expect(manifests.map(({ metadata }) => metadata.namespace)).toEqual(["oil-b", "oil-a"]);
    expect(manifests.map((manifest) => hardOf(manifest).pods)).toEqual(["5", "2"]);
  });

  describe("with a namespace that is being deleted", () => {
    const ending = (name: string, annotations: Record<string, string> = {}) => ({
      ...labelled(name, "oil", { deletionTimestamp: "2026-01-01T00:00:00Z", annotations }),
      kind: "Namespace",
    });
    const used = { pods: "4", "requests.memory": "0" };
    const other = quota("oil-a", { hard: none, used: none });

    it("counts what it still uses, gives it nothing, and notes its use", async () => {
      const left = quota("oil-b", { hard: { pods: "5", "requests.memory": "0" }, used });
      const [note, balanced, ...others] = await written([ending("oil-b"), other, left]);
      expect(note).toMatchObject({
        kind: "Namespace",
        metadata: { name: "oil-b", annotations: { "kindstack.dev/last-quota-use": JSON.stringify({ 0: used }) } },
      });
      expect(balanced).toMatchObject({ metadata: { namespace: "oil-a" }, spec: { hard: { pods: "6" } } });
      expect(balanced?.metadata.annotations).toMatchObject({ "quota.capsule.clastix.io/used-pods": "4" });
      expect(others).toEqual([]);
    });

    it("counts it until it is gone, though its ResourceQuotas are gone before: by its note, or by what was seen", async () => {
      const noted = ending("oil-c", { "kindstack.dev/last-quota-use": JSON.stringify({ 0: used }) });
      expect((await written([noted, other])).map(hardOf)).toMatchObject([{ pods: "6" }]);

      const memory = new Map();
      await written([quota("oil-d", { hard: used, used })], { memory });
      const [note, balanced] = await written([ending("oil-d"), other], { memory });
      expect([note?.metadata.name, hardOf(balanced).pods]).toEqual(["oil-d", "6"]);
      await written([other], { memory });
      expect([...(memory.get("last use") as Map<string, unknown>).keys()]).toEqual(["oil-a"]);
      expect((await written([other])).map(hardOf)).toMatchObject([{ pods: "10" }]);
    });

    it.each([1e300, 1e-300, "1".repeat(65)])(
      "knows nothing of it from a note of %s, which is no amount",
      async (pods) => {
        const noted = (note: string) => written([ending("oil-c", { "kindstack.dev/last-quota-use": note }), other]);
        expect(await noted(JSON.stringify({ 0: { pods } }))).toEqual(await noted("no JSON"));
      },
    );

    it("counts what Kindstack's own quota said, whatever a user made beside it with a like name", async () => {
      const forged = quota("oil-d", { hard: none, used: none }, { name: "capsule-oil-x" });
      const memory = new Map();
      await written([quota("oil-d", { hard: used, used }), forged], { memory });
      const balanced = (await written([ending("oil-d"), other], { memory })).at(-1);
      expect(hardOf(balanced).pods).toBe("6");
    });

    it("counts what all of its ResourceQuotas said, also while some of them are gone before the others", async () => {
      const item = (index: number) => ({
        name: `capsule-oil-${index}`,
        labels: { ...labels, "capsule.clastix.io/resource-quota": String(index) },
      });
      const of = oilTenant({ resourceQuotas: [{ hard: { pods: 10 } }, { hard: { services: 10 } }] });
      const first = quota("oil-f", { hard: { pods: "4" }, used: { pods: "4" } }, item(0));
      const second = quota("oil-f", { hard: { services: "3" }, used: { services: "3" } }, item(1));
      const others = [
        quota("oil-a", { hard: { pods: "0" }, used: { pods: "0" } }, item(0)),
        quota("oil-a", { hard: { services: "0" }, used: { services: "0" } }, item(1)),
      ];
      const memory = new Map();
      await written([first, second, ...others], { of, memory });

      const [note, ...seen] = await written([ending("oil-f"), second, ...others], { of, memory });
      const noted = await written([ending("oil-f", note?.metadata.annotations), second, ...others], { of });

      for (const balanced of [seen, noted]) expect(balanced.map(hardOf)).toEqual([{ pods: "6" }, { services: "7" }]);
    });

    it("gives no one more while its use is not known", async () => {
      const some = quota("oil-a", { hard: { pods: "2", "requests.memory": "0" }, used: none });
      expect((await written([ending("oil-e"), some])).map(hardOf)).toMatchObject([{ pods: "2" }]);
    });
  });

  describe("with an ask for room", () => {
    const now = Date.parse("2026-01-01T00:00:00Z");
    beforeEach(() => void vi.useFakeTimers({ now }));
    afterEach(() => void vi.useRealTimers());

    const ask = (fields: object = {}) => ({ used: "0", more: "8", since: now, until: now + 5_000, ...fields });
    const balanced = async (asks: Record<string, string>) => {
      const hard = { pods: "5", "requests.memory": "1536Mi" };
      const quotas = [
        quota("oil-a", { hard, used: none }, { annotations: { ...shared, ...asks } }),
        quota("oil-b", { hard, used: none }, { annotations: shared }),
      ];
      const { manifests, again } = await balance(quotas);
      return { pods: manifests.map((manifest) => hardOf(manifest).pods), again };
    };
    const shared = {
      "quota.capsule.clastix.io/used-pods": "0",
      "quota.capsule.clastix.io/hard-pods": "10",
      "quota.capsule.clastix.io/used-requests.memory": "0",
      "quota.capsule.clastix.io/hard-requests.memory": "3Gi",
    };

    it("lowers what others do not use, and looks again when the ask ends", async () => {
      const { pods, again } = await balanced({ "ask.kindstack.dev/1": JSON.stringify({ pods: ask() }) });
      expect(pods).toEqual(["1"]);
      expect(again).toEqual({ requeueAfterMs: 5_000 });
    });

    it("adds up what several processes ask for, from the least that one of them saw used", async () => {
      const { pods } = await balanced({
        "ask.kindstack.dev/1": JSON.stringify({ pods: ask({ more: "4" }) }),
        "ask.kindstack.dev/2": JSON.stringify({ pods: ask({ used: "4", more: "3" }) }),
      });
      expect(pods).toEqual(["1"]);
    });

    it.each([
      ["has ended", JSON.stringify({ pods: ask({ until: now - 1 }) })],
      ["lasts longer than any does", JSON.stringify({ pods: ask({ until: now + 3_600_000 }) })],
      ["is for another resource", JSON.stringify({ services: ask() })],
      ["is no ask", JSON.stringify({ pods: { used: 1 } })],
      ["has no amounts", JSON.stringify({ pods: ask({ more: "many" }) })],
      ["has an exponent that takes long to compute", JSON.stringify({ pods: ask({ more: "1e100000000" }) })],
      ["is no JSON", "{"],
    ])("changes nothing when it %s", async (_, text) => {
      expect((await balanced({ "ask.kindstack.dev/1": text })).pods).toEqual([]);
    });
  });
});
