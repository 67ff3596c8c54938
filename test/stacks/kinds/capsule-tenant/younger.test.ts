import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { LiveObject, Manifest } from "../../../../providers/kubernetes/client";
import { eventually } from "../../../../src/testing/eventually";
import type { AdmissionView } from "../../../../stacks/contract/admission";
import { LateCollisions } from "../../../../stacks/kinds/capsule-tenant/admission/late-collisions";
import { capsuleTenant } from "../../../../stacks/kinds/capsule-tenant/kind";
import { tellOfSurplus } from "../../../../stacks/kinds/capsule-tenant/younger";
import { admissionView } from "./admission-view";
import { counted, labelled, oilTenant } from "./objects";

const NOW = Date.parse("2026-01-01T00:00:10Z");
const at = (second: number) => new Date(Date.parse("2026-01-01T00:00:00Z") + second * 1_000).toISOString();
const deletesYounger = () => vi.stubEnv("KINDSTACK_CAPSULE_DELETE_YOUNGER", "true");

beforeEach(() => void vi.spyOn(Date, "now").mockReturnValue(NOW));
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

describe("namespaces that came together beyond the quota", () => {
  const tenant = oilTenant({ namespaceQuota: 1 });
  const first = labelled("oil-b", "oil", { creationTimestamp: at(0) });
  const second = labelled("oil-a", "oil", { creationTimestamp: at(1) });
  async function told(...owned: LiveObject[]) {
    const applied: Manifest[] = [];
    const [remove, warn] = [vi.fn(async () => {}), vi.fn()];
    await tellOfSurplus(tenant, { owned, apply: async (manifest) => void applied.push(manifest), remove, warn });
    return { applied, remove, warn };
  }
  const noted = (namespace: LiveObject): LiveObject => ({
    ...namespace,
    metadata: { ...namespace.metadata, annotations: { "kindstack.dev/beyond-namespace-quota": "1" } },
  });

  it("are told of once by an Event, and kept", async () => {
    const { applied, remove, warn } = await told(first, second);
    expect(applied.map(({ metadata }) => [metadata.name, metadata.annotations])).toEqual([
      ["oil-a", { "kindstack.dev/beyond-namespace-quota": "1" }],
    ]);
    expect(warn.mock.calls).toEqual([[second, "NamespaceQuotaExceeded", expect.stringContaining("no rights in it")]]);
    expect(remove).not.toHaveBeenCalled();

    const again = await told(first, noted(second));
    expect([again.applied, again.warn.mock.calls]).toEqual([[], []]);
  });

  it("lose the note when there is room", async () => {
    const { applied, warn } = await told(noted(second));
    expect(applied).toMatchObject([{ metadata: { name: "oil-a", annotations: {} } }]);
    expect(warn).not.toHaveBeenCalled();
  });

  it("are deleted where the installation says so, but never what was there before", async () => {
    deletesYounger();
    const { remove, warn } = await told(first, second);
    expect(remove.mock.calls).toEqual([[second]]);
    expect(warn.mock.calls).toEqual([[second, "NamespaceQuotaExceeded", expect.stringContaining("it is deleted")]]);

    const old = labelled("oil-old", "oil", { creationTimestamp: "2025-01-01T00:00:00Z" });
    const given: LiveObject = {
      ...labelled("x", "oil", { namespace: "oil-a", labels: { "capsule.clastix.io/role-binding": "0" } }),
      kind: "RoleBinding",
    };
    expect((await told(second, given, old)).remove).not.toHaveBeenCalled();
  });
});

it("namespaces that cannot be deleted hold up no quota of their tenant", async () => {
  deletesYounger();
  const spec = { namespaceQuota: 1, resourceQuotas: [{ hard: { pods: 10 } }] };
  const namespaces = ["oil-a", "oil-b"].map((name) => labelled(name, "oil", { creationTimestamp: at(0) }));
  const owned = [...namespaces, ...counted("oil-a", spec)];
  const applied: string[] = [];
  const maintained = capsuleTenant.capabilities.maintain?.(oilTenant(spec), {
    owned,
    apply: async ({ kind }) => void applied.push(kind),
    tryOut: async () => undefined,
    remove: () => Promise.reject(new Error("protected")),
    memory: new Map(),
    warn() {},
  });
  await expect(maintained).rejects.toThrow("protected");
  expect(applied).toContain("ResourceQuota");
});

describe("Ingresses that came together and collide", () => {
  const tenant = oilTenant({ hostnameCollisionScope: "Tenant" });
  const ingress = (namespace: string, name: string, second: number, host = "x.org"): LiveObject => ({
    apiVersion: "networking.k8s.io/v1",
    kind: "Ingress",
    metadata: {
      ...{ name, namespace, uid: `uid-${name}`, resourceVersion: "1", generation: 1 },
      creationTimestamp: at(second),
    },
    spec: { rules: [{ host }] },
  });
  const [older, younger] = [ingress("oil-a", "first", 0), ingress("oil-b", "second", 1)];
  async function found(
    changed: LiveObject,
    ingresses: LiveObject[],
    annotations: Record<string, string> = {},
    tell = (view: AdmissionView) => new LateCollisions().ingressChanged(changed, view),
  ) {
    const mergePatch = vi.fn(async (..._patch: unknown[]) => ({}) as LiveObject);
    const remove = vi.fn(async (..._object: unknown[]) => changed);
    const warn = vi.fn();
    const namespaces = [labelled("oil-a"), labelled("oil-b", "oil", { annotations })];
    const view: AdmissionView = {
      ...admissionView({ tenants: [tenant], namespaces, ingresses }, { mergePatch, delete: remove }),
      warn,
    };
    tell(view);
    await eventually(() => expect(mergePatch.mock.calls.length + remove.mock.calls.length).toBeGreaterThan(0));
    await new Promise((resolve) => setTimeout(resolve, 20));
    const notes = mergePatch.mock.calls.map(([, name, , patch]) => [
      name,
      (patch as Manifest).metadata.annotations?.["kindstack.dev/host-collisions"],
    ]);
    return { notes, remove, warn };
  }
  const note = JSON.stringify({ second: "x.org/ of oil-a/first" });

  it.each([
    ["the younger", younger],
    ["the older", older],
  ])("are found when the event of %s comes last; the younger one is noted and told of", async (_, last) => {
    const { notes, remove, warn } = await found(last, [older, younger]);
    expect(notes).toEqual([["oil-b", note]]);
    expect(warn.mock.calls).toEqual([[younger, "HostCollision", expect.stringContaining("x.org/ of oil-a/first")]]);
    expect(remove).not.toHaveBeenCalled();
  });

  it("lose the note when one of them has changed or gone", async () => {
    const noted = { "kindstack.dev/host-collisions": note };
    expect((await found(older, [younger], noted)).notes).toEqual([["oil-b", null]]);
    const gone = new LateCollisions();
    expect(await found(younger, [older], noted, (view) => gone.ingressDeleted(younger, view))).toMatchObject({
      notes: [["oil-b", null]],
    });
    const changed = { ...younger, spec: { rules: [{ host: "y.org" }] } };
    expect((await found(changed, [older, changed], noted)).notes).toEqual([["oil-b", null]]);
  });

  it("name no Ingress of another tenant", async () => {
    const gas = { ...tenant, metadata: { ...tenant.metadata, name: "gas", uid: "uid-gas" } };
    const warn = vi.fn();
    const mergePatch = vi.fn(async (..._patch: unknown[]) => ({}) as LiveObject);
    const cluster = { hostnameCollisionScope: "Cluster" as const };
    const objects = {
      tenants: [oilTenant(cluster), { ...gas, spec: oilTenant(cluster).spec }],
      namespaces: [labelled("oil-a", "gas"), labelled("oil-b")],
      ingresses: [older, younger],
    };
    new LateCollisions().ingressChanged(younger, { ...admissionView(objects, { mergePatch }), warn });
    await eventually(() => expect(warn).toHaveBeenCalled());
    expect(JSON.stringify([warn.mock.calls[0]?.[2], mergePatch.mock.calls])).not.toMatch(/oil-a|first/);
    expect(warn.mock.calls[0]?.[2]).toContain("x.org/ of another tenant");
  });

  it("are looked for when what they take changes, whatever else does, and a tenth of the time at most", async () => {
    const byIndex = vi.fn(() => []);
    const view = {
      ...admissionView({ tenants: [tenant], namespaces: [labelled("oil-b")], ingresses: [younger] }),
      byIndex,
    };
    const collisions = new LateCollisions();
    const changed = (generation: number) =>
      collisions.ingressChanged({ ...younger, metadata: { ...younger.metadata, generation } }, view);
    changed(1);
    await eventually(() => expect(byIndex.mock.calls.length).toBeGreaterThan(1));
    await new Promise((resolve) => setTimeout(resolve, 50));
    const looked = byIndex.mock.calls.length;
    for (let edits = 0; edits < 1_000; edits++) changed(1);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(byIndex.mock.calls.length).toBe(looked);
    changed(2);
    await eventually(() => expect(byIndex.mock.calls.length).toBeGreaterThan(looked + 1));
  });

  it("are not deleted for an old Ingress that was changed to take what a new one takes", async () => {
    deletesYounger();
    const old = ingress("oil-a", "first", -3_600);
    const { notes, remove } = await found(younger, [old, younger]);
    expect(notes).toEqual([["oil-b", note]]);
    expect(remove).not.toHaveBeenCalled();
  });

  it("are deleted where the installation says so: the younger one, with its UID", async () => {
    deletesYounger();
    const { remove, warn } = await found(older, [older, younger]);
    expect(remove.mock.calls).toEqual([
      [{ apiVersion: "networking.k8s.io/v1", kind: "Ingress" }, "second", "oil-b", { uid: "uid-second" }],
    ]);
    expect(warn.mock.calls).toEqual([[younger, "HostCollision", expect.stringContaining("it is deleted")]]);
  });
});
