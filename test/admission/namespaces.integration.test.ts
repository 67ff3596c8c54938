import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  type KubernetesClient,
  known,
  type LiveObject,
  type Manifest,
  type ResourceType,
} from "../../providers/kubernetes/client";
import { eventually } from "../../src/testing/eventually";
import { TENANT_LABEL } from "../../stacks/kinds/capsule-tenant/labels";
import { surplusNamespaces } from "../../stacks/kinds/capsule-tenant/namespaces";
import { controlPlane } from "../control-plane";
import { bindingFor, roleFor, userNamed } from "../rights";
import { create, expectAcceptance, expectRefusal, namespaceOf, TestAdmission, uniqueName } from "./test-admission";

const admission = new TestAdmission(controlPlane());
const [oil, gas, wind] = [uniqueName("oil"), uniqueName("gas"), uniqueName("wind")];
const [alice, bob, carol] = [uniqueName("alice"), uniqueName("bob"), uniqueName("carol")];
let asAlice: KubernetesClient;
let asBob: KubernetesClient;
let oilTenant: LiveObject;
let gasTenant: LiveObject;
let namespaces: ResourceType;
let tenants: ResourceType;

beforeAll(async () => {
  await admission.open();
  namespaces = await admission.client.resourceType("v1", "Namespace");
  tenants = await admission.client.resourceType("capsule.clastix.io/v1alpha1", "Tenant");
  oilTenant = await admission.tenant(oil, { owner: { kind: "User", name: alice }, namespaceQuota: 3 });
  gasTenant = await admission.tenant(gas, { owner: { kind: "User", name: bob } });
  await admission.tenant(wind, { owner: { kind: "User", name: bob } });
  asAlice = await admission.user(alice);
  asBob = await admission.user(bob);
  await admission.serve();
});
afterAll(() => admission.close());

/** With a reference to its tenant, the garbage collector would delete a namespace whatever the tenant waits for. */
const marks = ({ metadata: { labels, ownerReferences } }: LiveObject) => [labels?.[TENANT_LABEL], ownerReferences];

describe("a namespace that an owner creates", () => {
  it("becomes the tenant's, by label", async () => {
    const namespace = await create(asAlice, namespaceOf(uniqueName("dev"), { labels: { stage: "dev" } }), true);

    expect(namespace.metadata.labels).toMatchObject({ stage: "dev" });
    expect(marks(namespace)).toEqual([oil, undefined]);
  });

  it("needs a label when the owner has several tenants, and the refusal names them", async () => {
    await expectRefusal(asBob, namespaceOf(uniqueName("which")), `must name one of ${gas}, ${wind}`);

    const namespace = await create(asBob, namespaceOf(uniqueName("gas"), { labels: { [TENANT_LABEL]: gas } }), true);

    expect(marks(namespace)).toEqual([gas, undefined]);
  });

  it("is refused to members of the group who own nothing", async () => {
    await expectRefusal(await admission.user(uniqueName("mallory")), namespaceOf(uniqueName("x")), "owns no tenant");
  });

  it.each<[string, (client: KubernetesClient) => Promise<unknown>]>([
    ["by name", (client) => create(client, namespaceOf(uniqueName("kube")), true)],
    [
      "by a name that the operator's configuration protects",
      (client) => create(client, namespaceOf("kindstack-system"), true),
    ],
    [
      "by a generated name",
      (client) => create(client, { ...namespaceOf(""), metadata: { generateName: "kube-" } }, true),
    ],
  ])("cannot be a protected one, %s; the refusal says who protects it", async (_, creation) => {
    await expect(creation(asAlice)).rejects.toThrow(
      /the operator protects kube-\*, default, kindstack-system \(KINDSTACK_PROTECTED_NAMESPACES\)/,
    );
  });

  it("begins with the tenant's name where it says so, and with several tenants goes to the closest", async () => {
    const [awesome, owner] = [uniqueName("awesome"), uniqueName("john")];
    for (const name of [awesome, `${awesome}-tenant`]) {
      await admission.tenant(name, { owner: { kind: "User", name: owner }, forceTenantPrefix: true });
    }
    const asJohn = await admission.user(owner);
    const tenantOf = async (name: string) => marks(await create(asJohn, namespaceOf(name), true))[0];
    await eventually(async () => expect(await tenantOf(`${awesome}-tenant-namespace`)).toBe(`${awesome}-tenant`));

    expect(await tenantOf(`${awesome}-tenant`)).toBe(awesome);
    expect(await tenantOf(`${awesome}-namespace`)).toBe(awesome);
    await expectRefusal(asJohn, namespaceOf(uniqueName("other")), "must name one of");
    const labels = { [TENANT_LABEL]: awesome };
    await expectRefusal(asJohn, namespaceOf(uniqueName("other"), { labels }), `begin with "${awesome}-"`);
  });

  it("cannot have labels and annotations that are reserved, or that the tenant forbids, but what it allows", async () => {
    const [name, owner] = [uniqueName("strict"), uniqueName("dora")];
    await admission.tenant(
      name,
      {
        owner: { kind: "User", name: owner },
        namespacesMetadata: {
          forbiddenLabels: { denied: ["team"], deniedRegex: "^cost" },
          allowedLabels: { allowed: ["cost-center", "pod-security.kubernetes.io/warn", "kindstack.dev/owner-uid"] },
        },
      },
      { "capsule.clastix.io/forbidden-namespace-annotations": "note, remark" },
    );
    const asDora = await admission.user(owner);
    const namespace = (metadata: object) => namespaceOf(uniqueName("ns"), metadata);
    await eventually(() => create(asDora, namespace({ labels: { stage: "dev" } }), true));

    for (const metadata of [
      { labels: { "pod-security.kubernetes.io/enforce": "privileged" } },
      { labels: { "kindstack.dev/owner-uid": "me" } },
      { labels: { team: "blue" } },
      { labels: { costs: "much" } },
      { annotations: { "scheduler.alpha.kubernetes.io/node-selector": "a=b" } },
      { annotations: { "kindstack.dev/enforced-tenant": "me" } },
      { annotations: { "kindstack.dev/host-collisions": "{}" } },
      { annotations: { remark: "x" } },
    ]) {
      await expectRefusal(asDora, namespace(metadata), "cannot be set on a namespace");
    }
    for (const metadata of [
      { labels: { "pod-security.kubernetes.io/warn": "baseline", "cost-center": "7", "app.kubernetes.io/name": "a" } },
      { annotations: { "kubectl.kubernetes.io/last-applied-configuration": "{}", description: "b" } },
    ]) {
      await expectAcceptance(asDora, namespace(metadata));
    }
  });

  it("is refused while its tenant is cordoned, by field or by Capsule's label", async () => {
    const owner = uniqueName("erin");
    const name = uniqueName("cordoned");
    await admission.tenant(name, { owner: { kind: "User", name: owner } });
    const asErin = await admission.user(owner);
    await eventually(() => create(asErin, namespaceOf(uniqueName("ns")), true));
    const set = (patch: object) => admission.client.mergePatch(tenants, name, undefined, patch);

    await set({ metadata: { labels: { "capsule.clastix.io/cordon": "enabled" } } });
    await eventually(() => expectRefusal(asErin, namespaceOf(uniqueName("ns")), `the tenant ${name} is cordoned`));
    await set({ metadata: { labels: null } });
    await eventually(() => create(asErin, namespaceOf(uniqueName("ns")), true));
    await set({ spec: { cordoned: true } });
    await eventually(() => expectRefusal(asErin, namespaceOf(uniqueName("ns")), `the tenant ${name} is cordoned`));
  });

  it("is the tenant's of a group or of a ServiceAccount, too", async () => {
    const team = uniqueName("team");
    await admission.tenant(team, { owner: { kind: "Group", name: "capsule.clastix.io" } });
    const member = await admission.user(uniqueName("member"));
    await eventually(async () => {
      const namespace = await create(member, namespaceOf(uniqueName("team")), true);
      expect(marks(namespace)).toEqual([team, undefined]);
    });
    await admission.client.delete(tenants, team);
    const robot = `system:serviceaccount:default:${uniqueName("robot")}`;
    const robots = uniqueName("robots");
    await admission.tenant(robots, { owner: { kind: "ServiceAccount", name: robot } });
    const asRobot = await admission.user(robot);
    await eventually(async () => {
      const namespace = await create(asRobot, namespaceOf(uniqueName("robots")), true);
      expect(marks(namespace)).toEqual([robots, undefined]);
    });
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
    for (const name of surplus) await admission.client.delete(namespaces, name);
    await eventually(async () => expect(await admission.namespacesOf(oil)).toHaveLength(3));
  });

  it("is free again when a namespace is gone", async () => {
    const [gone] = await admission.namespacesOf(oil);
    const { name } = (gone as LiveObject).metadata;
    await admission.client.delete(namespaces, name);
    await eventually(async () => expect(await known(admission.client.get(namespaces, name))).toBeUndefined());

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
    const [taken] = await admission.namespacesOf(oil);

    const answer = create(asAlice, namespaceOf((taken as LiveObject).metadata.name));

    await expect(answer).rejects.toMatchObject({ status: 409, reason: "AlreadyExists" });
  });
});

describe("theft", () => {
  const reference = () => ({
    apiVersion: "capsule.clastix.io/v1alpha1",
    kind: "Tenant",
    name: gas,
    uid: gasTenant.metadata.uid,
  });
  let own: string;
  let asCarol: KubernetesClient;
  beforeAll(async () => {
    own = ((await admission.namespacesOf(oil))[0] as LiveObject).metadata.name;
    // More rights than any tenant's owner has: she may change all namespaces, but not Tenants.
    const role = uniqueName("namespace-editor");
    const resources = ["namespaces", "namespaces/status", "namespaces/finalize"];
    const rules = [{ apiGroups: [""], resources, verbs: ["create", "patch", "update"] }];
    for (const manifest of roleFor([userNamed(carol)], rules, { name: role })) await admission.create(manifest);
    asCarol = await admission.user(carol, "others");
  });

  it.each<[string, () => Manifest["metadata"], string, object?]>([
    ["the label of another owner's tenant", () => ({ labels: { [TENANT_LABEL]: gas } }), "does not own"],
    ["the label of a tenant that does not exist", () => ({ labels: { [TENANT_LABEL]: "none" } }), "does not own"],
    ["an owner reference to another owner's tenant", () => ({ ownerReferences: [reference()] }), "cannot be owned by"],
    [
      "an owner reference to anything that would outlive its tenant",
      () => ({ ownerReferences: [{ apiVersion: "v1", kind: "Node", name: "n", uid: "u" }] }),
      "ends with it: it cannot be owned by Node n as well",
    ],
    ["a finalizer", () => ({ finalizers: ["example.com/held"] }), "finalizers can be neither set nor removed"],
    [
      "a finalizer of its specification",
      () => ({}),
      "finalizers can be neither set nor removed",
      { finalizers: ["kubernetes", "example.com/stays"] },
    ],
    ["Kindstack's own mark", () => ({ labels: { "kindstack.dev/owner-uid": "x" } }), "cannot be set on a namespace"],
  ])("by a creation with %s is refused", async (_, metadata, message, spec = {}) => {
    await admission.client.mergePatch(tenants, oil, undefined, { spec: { namespaceQuota: 5 } });
    const namespace = { ...namespaceOf(uniqueName("theft"), metadata()), spec };
    await eventually(() => expectRefusal(asAlice, namespace, message));
  });

  describe("of the rights of accounts, by making their home,", () => {
    const rbac = "rbac.authorization.k8s.io";
    const cases: Record<string, (home: string) => Manifest> = {
      "of a ClusterRoleBinding to an account": (home) =>
        bindingFor([{ kind: "ServiceAccount", name: "robot", namespace: home }], "view", { name: home }),
      "of a ClusterRoleBinding to all accounts of a namespace": (home) =>
        bindingFor([{ apiGroup: rbac, kind: "Group", name: `system:serviceaccounts:${home}` }], "view", { name: home }),
      "of a RoleBinding in a namespace of no tenant": (home) => {
        const account = userNamed(`system:serviceaccount:${home}:robot`);
        return bindingFor([account], "view", { name: home, namespace: admission.namespace });
      },
      "of the groups of another kind's Tenant": (home) => ({
        apiVersion: "multitenancy.codereliant.io/v1",
        kind: "Tenant",
        metadata: { name: home },
        spec: { adminEmail: "a@b.c", namespaces: [], adminGroups: [`system:serviceaccounts:${home}`] },
      }),
    };
    it.each(Object.entries(cases))("%s is refused", async (_, manifest) => {
      await admission.client.mergePatch(tenants, oil, undefined, { spec: { namespaceQuota: 20 } });
      const home = uniqueName("home");
      await admission.create(manifest(home));
      await eventually(() => expectRefusal(asAlice, namespaceOf(home), "is the home of accounts that have rights"));
    });

    it("cannot be kept from other tenants by bindings in one's own namespaces", async () => {
      const [theirs, home] = [uniqueName("gas"), uniqueName("home")];
      await admission.tenantNamespace(theirs, gas, bob);
      const binding = cases["of a RoleBinding in a namespace of no tenant"]?.(home) as Manifest;
      await admission.create({ ...binding, metadata: { name: home, namespace: theirs } });
      const seen = uniqueName("seen");
      await admission.create(cases["of a RoleBinding in a namespace of no tenant"]?.(seen) as Manifest);
      await eventually(() => expectRefusal(asAlice, namespaceOf(seen), "is the home"));
      await expectAcceptance(asAlice, namespaceOf(home));
    });
  });

  it("of an account's rights by making its home is refused, but in the tenant that names it alone", async () => {
    const [home, own] = [uniqueName("home"), uniqueName("home")];
    await admission.tenant(uniqueName("robots"), {
      owner: { kind: "ServiceAccount", name: `system:serviceaccount:${home}:robot` },
      additionalRoleBindings: [
        { clusterRoleName: "view", subjects: [{ kind: "ServiceAccount", name: "x", namespace: `${home}-2` }] },
        { clusterRoleName: "view", subjects: [{ kind: "Group", name: `system:serviceaccounts:${home}-3` }] },
      ],
    });
    for (const name of [home, `${home}-2`, `${home}-3`]) {
      await eventually(() => expectRefusal(asAlice, namespaceOf(name), "is the home of accounts that have rights"));
    }
    await admission.client.mergePatch(tenants, oil, undefined, {
      spec: {
        namespaceQuota: 5,
        additionalRoleBindings: [
          { clusterRoleName: "view", subjects: [{ kind: "ServiceAccount", name: "x", namespace: own }] },
        ],
      },
    });
    await eventually(() => create(asAlice, namespaceOf(own), true));
  });

  it("by an owner reference of a backup comes to the tenant without it", async () => {
    const former = { apiVersion: "capsule.clastix.io/v1alpha1", kind: "Tenant", name: oil, uid: "of-a-backup" };
    await eventually(async () => {
      const namespace = await create(asAlice, namespaceOf(uniqueName("restored"), { ownerReferences: [former] }), true);
      expect(marks(namespace)).toEqual([oil, undefined]);
    });
  });

  it("by creating what a tenant's webhook does not see is refused", async () => {
    const metadata = { labels: { [TENANT_LABEL]: oil } };
    await expectRefusal(asCarol, namespaceOf(uniqueName("theft"), metadata), "ValidatingAdmissionPolicy");
  });

  it.each(["", "/status"])("by changing the label or the owner of a namespace%s is refused", async (subresource) => {
    const change = (namespace: string, metadata: object) =>
      asCarol.json("PATCH", `/api/v1/namespaces/${namespace}${subresource}`, {
        query: { dryRun: "All" },
        body: { metadata },
        contentType: "application/merge-patch+json",
      });
    for (const label of [gas, null]) {
      await expect(change(own, { labels: { [TENANT_LABEL]: label } })).rejects.toThrow(`is of the tenant ${oil}`);
    }
    await expect(change("kube-system", { labels: { [TENANT_LABEL]: oil } })).rejects.toThrow(
      "cannot be given to a tenant",
    );
    await expect(change(own, { ownerReferences: [reference()] })).rejects.toThrow("cannot be owned by a Tenant");
    const node = { apiVersion: "v1", kind: "Node", name: "n", uid: "u" };
    await expect(change(own, { ownerReferences: [node] })).rejects.toThrow("it can have no other owner");
    await expect(change(own, { labels: { "kindstack.dev/owner-uid": "x" } })).rejects.toThrow("Kindstack alone");
    await expect(
      change(own, { annotations: { "scheduler.alpha.kubernetes.io/node-selector": "a=b" } }),
    ).rejects.toThrow("follows the nodeSelector");
    const metadata = { labels: { stage: "prod" } };
    await expect(change(own, metadata)).resolves.toMatchObject({ metadata });
  });

  it("by an owner of another tenant comes to nothing for lack of rights", async () => {
    const patch = asBob.mergePatch(namespaces, own, undefined, { metadata: { labels: { [TENANT_LABEL]: gas } } });

    await expect(patch).rejects.toMatchObject({ status: 403 });
  });
});

describe("tools of an owner", () => {
  let own: string;
  beforeAll(async () => {
    const { items } = await admission.client.list(namespaces, { labelSelector: `${TENANT_LABEL}=${oil}` });
    own = (items[0] as LiveObject).metadata.name;
    await admission.bindOwner(own, alice);
    await eventually(() => apply(asAlice, own, {}));
  });

  /** As `kubectl apply --server-side` and GitOps controllers do. */
  const apply = (client: KubernetesClient, name: string, labels: Record<string, string>, dryRun = false) =>
    client.json<LiveObject>("PATCH", `/api/v1/namespaces/${name}`, {
      query: { fieldManager: "flux", force: "true", dryRun: dryRun ? "All" : undefined },
      body: namespaceOf(name, { labels }),
      contentType: "application/apply-patch+yaml",
    });

  it("apply a namespace that is not there yet, and again", async () => {
    await admission.client.mergePatch(tenants, oil, undefined, { spec: { namespaceQuota: 20 } });
    const name = uniqueName("gitops");
    expect(await known(asAlice.get(namespaces, name))).toBeUndefined(); // as client-side apply asks first
    const made = await eventually(() => apply(asAlice, name, { stage: "dev" }));
    expect(marks(made)).toEqual([oil, undefined]);
    await expect(apply(asAlice, name, { stage: "prod" })).rejects.toThrow("you have no rights in it yet");
    await admission.bindOwner(name, alice);

    const again = await eventually(() => apply(asAlice, name, { stage: "prod" }));

    expect(again.metadata.labels).toMatchObject({ stage: "prod", [TENANT_LABEL]: oil });
  });

  it("label, annotate, patch and diff within the tenant's rules", async () => {
    const patch = (metadata: object) => asAlice.mergePatch(namespaces, own, undefined, { metadata });
    const metadata = { labels: { stage: "dev" }, annotations: { note: "x" } };
    await expect(patch(metadata)).resolves.toMatchObject({ metadata });
    await expect(apply(asAlice, own, { stage: "prod" }, true)).resolves.toMatchObject({
      metadata: { labels: { stage: "prod" } },
    });
    for (const [metadata, message] of [
      [{ labels: { "pod-security.kubernetes.io/enforce": "privileged" } }, "cannot be changed by its owner"],
      [{ labels: { [TENANT_LABEL]: gas } }, `is of the tenant ${oil}`],
      [{ finalizers: ["example.com/held"] }, "finalizers can be neither set nor removed"],
      [{ ownerReferences: [{ apiVersion: "v1", kind: "Node", name: "n", uid: "u" }] }, "it can have no other owner"],
    ] as const) {
      await expect(patch(metadata)).rejects.toThrow(message);
    }
  });

  it("set no finalizers as an account that the owner gave the right to patch", async () => {
    const account = `system:serviceaccount:${own}:robot`;
    await admission.grant(own, account, { resources: ["namespaces", "namespaces/status"], verbs: ["patch", "update"] });
    const asAccount = await admission.user(account, "system:serviceaccounts");
    const patch = (metadata: object) => asAccount.mergePatch(namespaces, own, undefined, { metadata });
    await eventually(() => patch({ labels: { stage: "test" } }));
    await expect(patch({ finalizers: ["example.com/held"] })).rejects.toThrow("finalizers can be neither set nor");
    await expect(
      asAccount.json("PATCH", `/api/v1/namespaces/${own}/status`, {
        body: { metadata: { finalizers: ["example.com/held"] } },
        contentType: "application/merge-patch+json",
      }),
    ).rejects.toThrow("finalizers can be neither set nor");
  });

  it("reach no other namespace", async () => {
    for (const name of ["default", "kube-system", admission.namespace]) {
      await expect(apply(asAlice, name, { stage: "dev" })).rejects.toThrow("is of no tenant of yours");
      await expect(apply(asBob, own, { stage: "dev" })).rejects.toThrow("is of no tenant of yours");
    }
  });
});

describe("a namespace that names a tenant that lives no more, as a backup has it", () => {
  const reference = (name: string, uid: string = randomUUID()) => ({
    apiVersion: "capsule.clastix.io/v1alpha1",
    kind: "Tenant",
    name,
    uid,
  });

  it("loses the reference, whoever creates it", async () => {
    const other = { apiVersion: "v1", kind: "Namespace", name: admission.namespace, uid: randomUUID() };
    const restored = async (...ownerReferences: ReturnType<typeof reference>[]) => {
      const metadata = { labels: { [TENANT_LABEL]: oil }, ownerReferences };
      return marks(await create(admission.client, namespaceOf(uniqueName("restored"), metadata), true));
    };
    expect(await restored(reference(oil))).toEqual([oil, undefined]);
    expect(await restored(reference(oil, oilTenant.metadata.uid))).toEqual([oil, undefined]);
    expect(await restored(reference(uniqueName("gone")), other)).toMatchObject([oil, [{ uid: other.uid }]]);
  });
});
