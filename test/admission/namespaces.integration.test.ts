import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type KubernetesClient, known, type LiveObject, type Manifest } from "../../providers/kubernetes/client";
import { eventually } from "../../src/testing/eventually";
import { TENANT_LABEL } from "../../stacks/kinds/capsule-tenant/labels";
import { surplusNamespaces } from "../../stacks/kinds/capsule-tenant/namespaces";
import { controlPlane } from "../control-plane";
import { NAMESPACE } from "../providers/kubernetes/test-cluster";
import { bindingFor, roleFor, userNamed } from "../rights";
import { create, expectRefusal, namespaceOf, TENANT, TestAdmission, uniqueName } from "./test-admission";

const admission = new TestAdmission(controlPlane());
const [oil, gas] = [uniqueName("oil"), uniqueName("gas")];
const [alice, bob, carol] = [uniqueName("alice"), uniqueName("bob"), uniqueName("carol")];
let asAlice: KubernetesClient;
let asBob: KubernetesClient;
let gasTenant: LiveObject;

beforeAll(async () => {
  await admission.open();
  await admission.tenant(oil, { owner: { kind: "User", name: alice }, namespaceQuota: 3 });
  gasTenant = await admission.tenant(gas, { owner: { kind: "User", name: bob } });
  asAlice = await admission.user(alice);
  asBob = await admission.user(bob);
  await admission.serve();
});
afterAll(() => admission.close());

/** With a reference to its tenant, the garbage collector would delete a namespace whatever the tenant waits for. */
const marks = ({ metadata: { labels, ownerReferences } }: LiveObject) => [labels?.[TENANT_LABEL], ownerReferences];

/** A merge patch of a namespace, or of its subresource. */
const patch = (client: KubernetesClient, path: string, metadata: object) =>
  client.json("PATCH", `/api/v1/namespaces/${path}`, {
    query: { dryRun: "All" },
    body: { metadata },
    contentType: "application/merge-patch+json",
  });

async function someNamespaceOf(tenant: string): Promise<string> {
  const [namespace] = await admission.namespacesOf(tenant);
  if (namespace === undefined) throw new Error(`${tenant} has no namespace`);
  return namespace.metadata.name;
}

describe("a namespace that an owner creates", () => {
  it("becomes the tenant's, by label", async () => {
    const namespace = await create(asAlice, namespaceOf(uniqueName("dev"), { labels: { stage: "dev" } }), true);

    expect(namespace.metadata.labels).toMatchObject({ stage: "dev" });
    expect(marks(namespace)).toEqual([oil, undefined]);
  });

  it("concerns no one who is not in the group", async () => {
    const namespace = await create(admission.client, namespaceOf(uniqueName("admins")), true);

    expect(namespace.metadata.labels?.[TENANT_LABEL]).toBeUndefined();
  });
});

describe("the quota of namespaces", () => {
  it("is kept: a namespace beyond it is refused, and one that came with others gets no rights", async () => {
    const names = Array.from({ length: 10 }, (_, i) => uniqueName(`oil-${i}`));

    const answers = await Promise.allSettled(names.map((name) => create(asAlice, namespaceOf(name))));

    for (const answer of answers) {
      if (answer.status === "rejected") expect(`${answer.reason}`).toContain(`${oil} has all of the 3 namespaces`);
    }
    await eventually(() => expectRefusal(asAlice, namespaceOf(uniqueName("more")), "has all of the 3 namespaces"));
    const made = await admission.namespacesOf(oil);
    const surplus = surplusNamespaces(await admission.findTenant(oil), made);
    expect(made.length).toBeGreaterThanOrEqual(3);
    expect(surplus.size).toBe(made.length - 3);
    for (const name of surplus) await admission.client.delete(NAMESPACE, name);
    await eventually(async () => expect(await admission.namespacesOf(oil)).toHaveLength(3));
  });

  it("is free again when a namespace is gone", async () => {
    const name = await someNamespaceOf(oil);
    await admission.client.delete(NAMESPACE, name);
    await eventually(async () => expect(await known(admission.client.get(NAMESPACE, name))).toBeUndefined());

    await eventually(() => create(asAlice, namespaceOf(name)));

    await expectRefusal(asAlice, namespaceOf(uniqueName("fourth")), "has all of the 3 namespaces");
  });

  it("counts a namespace whose name is generated once, from its creation on", async () => {
    const [name, owner] = [uniqueName("generated"), uniqueName("eve")];
    await admission.tenant(name, { owner: { kind: "User", name: owner }, namespaceQuota: 2 });
    const asEve = await admission.user(owner);
    const generated = () => create(asEve, { ...namespaceOf(""), metadata: { generateName: `${name}-` } });

    const first = await eventually(generated);
    await eventually(async () => expect(await admission.namespacesOf(name)).toHaveLength(1));
    const second = await generated();

    for (const { metadata } of [first, second]) expect(metadata.name).toMatch(new RegExp(`^${name}-[a-z0-9]{5}$`));
    expect(second.metadata.name).not.toBe(first.metadata.name);
    await expect(generated()).rejects.toThrow("has all of the 2 namespaces");
  });

  it("says of a name that is taken that it is taken", async () => {
    const answer = create(asAlice, namespaceOf(await someNamespaceOf(oil)));

    await expect(answer).rejects.toMatchObject({ status: 409, reason: "AlreadyExists" });
  });
});

describe("theft", () => {
  let own: string;
  let asCarol: KubernetesClient;
  beforeAll(async () => {
    own = await someNamespaceOf(oil);
    // More rights than any tenant's owner has: she may change all namespaces, but not Tenants.
    const role = uniqueName("namespace-editor");
    const resources = ["namespaces", "namespaces/status", "namespaces/finalize"];
    const rules = [{ apiGroups: [""], resources, verbs: ["create", "patch", "update"] }];
    for (const manifest of roleFor([userNamed(carol)], rules, { name: role })) await admission.create(manifest);
    asCarol = await admission.user(carol, "others");
  });

  it.each([
    ["a finalizer", { finalizers: ["example.com/held"] }, {}],
    ["a finalizer of its specification", {}, { finalizers: ["kubernetes", "example.com/stays"] }],
  ])("by a creation with %s is refused", async (_, metadata, spec) => {
    await admission.client.mergePatch(TENANT, oil, undefined, { spec: { namespaceQuota: 20 } });
    const namespace = { ...namespaceOf(uniqueName("theft"), metadata), spec };
    await eventually(() => expectRefusal(asAlice, namespace, "finalizers can be neither set nor removed"));
  });

  it.each<[string, (home: string) => Manifest]>([
    [
      "a ClusterRoleBinding",
      (home) => bindingFor([{ kind: "ServiceAccount", name: "robot", namespace: home }], "view", { name: home }),
    ],
    [
      "a RoleBinding in a namespace of no tenant",
      (home) => {
        const account = userNamed(`system:serviceaccount:${home}:robot`);
        return bindingFor([account], "view", { name: home, namespace: admission.namespace });
      },
    ],
    [
      "the groups of another kind's Tenant",
      (home) => ({
        apiVersion: "multitenancy.codereliant.io/v1",
        kind: "Tenant",
        metadata: { name: home },
        spec: { adminEmail: "a@b.c", namespaces: [], adminGroups: [`system:serviceaccounts:${home}`] },
      }),
    ],
  ])("of the rights of accounts by %s, by making their home, is refused", async (_, giving) => {
    const home = uniqueName("home");
    await admission.create(giving(home));
    await eventually(() => expectRefusal(asAlice, namespaceOf(home), "is the home of accounts that have rights"));
  });

  it("by creating what a tenant's webhook does not see is refused", async () => {
    const metadata = { labels: { [TENANT_LABEL]: oil } };
    await expectRefusal(asCarol, namespaceOf(uniqueName("theft"), metadata), "ValidatingAdmissionPolicy");
  });

  it.each(["", "/status"])("by changing the label or the owner of a namespace%s is refused", async (subresource) => {
    const change = (namespace: string, metadata: object) => patch(asCarol, namespace + subresource, metadata);
    const node = { apiVersion: "v1", kind: "Node", name: "n", uid: "u" };
    const tenant = { ...TENANT, name: gas, uid: gasTenant.metadata.uid };
    for (const [namespace, metadata, message] of [
      [own, { labels: { [TENANT_LABEL]: gas } }, `is of the tenant ${oil}`],
      [own, { labels: { [TENANT_LABEL]: null } }, `is of the tenant ${oil}`],
      ["kube-system", { labels: { [TENANT_LABEL]: oil } }, "cannot be given to a tenant"],
      [own, { ownerReferences: [tenant] }, "cannot be owned by a Tenant"],
      [own, { ownerReferences: [node] }, "it can have no other owner"],
      [own, { labels: { "kindstack.dev/owner-uid": "x" } }, "Kindstack alone"],
      [own, { annotations: { "scheduler.alpha.kubernetes.io/node-selector": "a=b" } }, "follows the nodeSelector"],
    ] as const) {
      await expect(change(namespace, metadata)).rejects.toThrow(message);
    }
    const metadata = { labels: { stage: "prod" } };
    await expect(change(own, metadata)).resolves.toMatchObject({ metadata });
  });
});

describe("tools of an owner", () => {
  let own: string;
  beforeAll(async () => {
    own = await someNamespaceOf(oil);
    await admission.bindOwner(own, alice);
    await eventually(() => apply(asAlice, own, {}));
  });

  /** As `kubectl apply --server-side` and GitOps controllers do. */
  const apply = (client: KubernetesClient, name: string, labels: Record<string, string>) =>
    client.json<LiveObject>("PATCH", `/api/v1/namespaces/${name}`, {
      query: { fieldManager: "flux", force: "true" },
      body: namespaceOf(name, { labels }),
      contentType: "application/apply-patch+yaml",
    });

  it("set no finalizers as an account that the owner gave the right to patch", async () => {
    const account = `system:serviceaccount:${own}:robot`;
    await admission.grant(own, account, { resources: ["namespaces", "namespaces/status"], verbs: ["patch", "update"] });
    const asAccount = await admission.user(account, "system:serviceaccounts");
    await eventually(() => patch(asAccount, own, { labels: { stage: "test" } }));
    for (const path of [own, `${own}/status`]) {
      const held = patch(asAccount, path, { finalizers: ["example.com/held"] });
      await expect(held).rejects.toThrow("finalizers can be neither set nor removed");
    }
  });

  it("reach no other namespace", async () => {
    for (const name of ["default", "kube-system", admission.namespace]) {
      await expect(apply(asAlice, name, { stage: "dev" })).rejects.toThrow("is of no tenant of yours");
      await expect(apply(asBob, own, { stage: "dev" })).rejects.toThrow("is of no tenant of yours");
    }
  });
});

it("a namespace that names a tenant that lives no more, as a backup has it, loses the reference, whoever creates it", async () => {
  const other = { apiVersion: "v1", kind: "Namespace", name: admission.namespace, uid: randomUUID() };
  const restored = async (...ownerReferences: NonNullable<Manifest["metadata"]["ownerReferences"]>) => {
    const metadata = { labels: { [TENANT_LABEL]: oil }, ownerReferences };
    return marks(await create(admission.client, namespaceOf(uniqueName("restored"), metadata), true));
  };

  expect(await restored({ ...TENANT, name: oil, uid: randomUUID() })).toEqual([oil, undefined]);
  const gone = { ...TENANT, name: uniqueName("gone"), uid: randomUUID() };
  expect(await restored(gone, other)).toMatchObject([oil, [{ uid: other.uid }]]);
});
