import { describe, expect, it } from "vitest";
import type { LiveObject } from "../../../../providers/kubernetes/client";
import { registeredBy } from "../../../../src/testing/registered";
import { ROLE_BINDING_LABEL } from "../../../../stacks/kinds/capsule-tenant/labels";
import { capsuleTenantProgram } from "../../../../stacks/kinds/capsule-tenant/program";
import type { CapsuleTenantSpec } from "../../../../stacks/kinds/capsule-tenant/schema";
import { counted, enforced, labelled, object, oil, oilTenant, sample } from "./objects";

/** With what the API server has been seen to enforce and to count in each namespace. */
const register = (
  spec: Partial<CapsuleTenantSpec>,
  watched: LiveObject[] = [enforced("oil-dev")],
  owned: LiveObject[] = watched.flatMap(({ metadata }) => counted(metadata.name, spec)),
) => registeredBy(capsuleTenantProgram, oilTenant(spec), { owner: oil, owned, watched });
const names = async (...args: Parameters<typeof register>) => (await register(...args)).map(({ name }) => name).sort();
const roles = async (...args: Parameters<typeof register>) =>
  (await names(...args)).filter((name) => name.startsWith("rolebinding"));
const manifestOf = async (name: string, ...args: Parameters<typeof register>) =>
  (await register(...args)).find((resource) => resource.name === name)?.inputs.manifest;

const reference = {
  apiVersion: "capsule.clastix.io/v1alpha1",
  kind: "Tenant",
  name: "oil",
  uid: "uid-oil",
  controller: true,
  blockOwnerDeletion: true,
};

/** What the sample is bound to: it restricts ingress classes and storage classes. */
const policies = ["policy/capsule-tenants-oil"];

describe("the stack of Capsule's Tenant", () => {
  it("binds the tenant to the policy when it restricts anything, and holds nothing else without namespaces", async () => {
    expect(await names(sample.spec, [])).toEqual(policies);
    expect(await names({}, [])).toEqual([]);
    expect(await manifestOf("policy/capsule-tenants-oil", sample.spec)).toMatchObject({
      kind: "ValidatingAdmissionPolicyBinding",
      spec: {
        policyName: "capsule-tenants",
        paramRef: { name: "oil", parameterNotFoundAction: "Deny" },
        matchResources: { namespaceSelector: { matchLabels: { "capsule.clastix.io/tenant": "oil" } } },
        validationActions: ["Deny"],
      },
    });
  });

  it("holds for the sample, in each namespace, what the source makes, named by index", async () => {
    const inOne = (namespace: string) => [
      `limitrange/${namespace}/0`,
      `namespace/${namespace}`,
      `networkpolicy/${namespace}/0`,
      ...[0, 1, 2].map((index) => `resourcequota/${namespace}/${index}`),
      ...[0, 1].map((index) => `rolebinding/${namespace}/${index}`),
    ];
    const all = [...policies, ...inOne("oil-dev"), ...inOne("oil-prod")].sort();
    expect(await names(sample.spec, [enforced("oil-prod"), enforced("oil-dev")])).toEqual(all);
  });

  it("gives no rights in the youngest namespaces beyond the quota, until there is room for them", async () => {
    const at = (name: string, second: number) => {
      const { metadata, ...rest } = enforced(name);
      return { ...rest, metadata: { ...metadata, creationTimestamp: `2026-01-01T00:00:0${second}Z` } };
    };
    const [old, young, youngest] = [at("oil-z", 0), at("oil-y", 1), at("oil-x", 2)];
    const rightsIn = async (namespaceQuota: number, watched: LiveObject[], owned: LiveObject[] = []) =>
      (await names({ namespaceQuota }, watched, owned)).filter((name) => name.endsWith("/0")).join();

    expect(await rightsIn(1, [youngest, young, old])).toBe("rolebinding/oil-z/0");
    expect(await rightsIn(2, [youngest, young, old])).toBe("rolebinding/oil-y/0,rolebinding/oil-z/0");
    expect(await rightsIn(1, [youngest])).toBe("rolebinding/oil-x/0");
    const given = object("RoleBinding", "oil-x", "capsule-oil-0", { "capsule.clastix.io/role-binding": "0" });
    expect(await rightsIn(1, [youngest, old], [given])).toBe("rolebinding/oil-x/0");
  });

  it("leaves namespaces alone that are being deleted", async () => {
    const ending = { ...enforced("oil-old").metadata, deletionTimestamp: "2026-01-01T00:00:00Z" };
    expect(await names({}, [labelled("oil-old", "oil", ending)])).toEqual([]);
  });

  it("never makes a namespace, and gives it the tenant's metadata", async () => {
    const spec = {
      ...sample.spec,
      nodeSelector: { "kubernetes.io/os": "linux", disk: "ssd" },
      namespacesMetadata: { additionalLabels: { env: "x" }, additionalAnnotations: { note: "y" } },
      containerRegistries: { allowed: ["docker.io", "quay.io"], allowedRegex: "^internal" },
    };
    const namespace = (await register(spec)).find(({ name }) => name === "namespace/oil-dev");
    expect(namespace?.inputs).toMatchObject({
      existing: true,
      givenBy: "capsule.clastix.io/tenant",
      deletedWith: reference,
    });
    expect(namespace?.inputs.manifest.metadata).toEqual({
      name: "oil-dev",
      labels: { env: "x", "capsule.clastix.io/tenant": "oil", "kindstack.dev/resource-quotas": "workloads" },
      annotations: {
        note: "y",
        "capsule.clastix.io/ingress-classes": "default",
        "capsule.clastix.io/storage-classes": "default",
        "capsule.clastix.io/allowed-registries": "docker.io,quay.io",
        "capsule.clastix.io/allowed-registries-regexp": "^internal",
        "scheduler.alpha.kubernetes.io/node-selector": "disk=ssd,kubernetes.io/os=linux",
      },
    });
  });

  it("labels what it makes with tenant and index", async () => {
    const manifest = await manifestOf("networkpolicy/oil-dev/0", sample.spec);
    expect(manifest?.metadata).toEqual({
      name: "capsule-oil-0",
      namespace: "oil-dev",
      labels: { "capsule.clastix.io/tenant": "oil", "capsule.clastix.io/network-policy": "0" },
    });
  });

  it("writes addresses as the networks that the API server takes", async () => {
    const manifest = await manifestOf("networkpolicy/oil-dev/0", {
      networkPolicies: [
        {
          podSelector: { matchLabels: { cidr: "not one" } },
          ingress: [{ from: [{ podSelector: {} }, { ipBlock: { cidr: "192.168.0.0/12" } }] }],
          egress: [{ to: [{ ipBlock: { cidr: "2001:DB8:0::1/32", except: ["2001:db8:1::1/48"] } }] }, {}],
        },
      ],
    });
    expect(manifest?.spec).toEqual({
      podSelector: { matchLabels: { cidr: "not one" } },
      ingress: [{ from: [{ podSelector: {} }, { ipBlock: { cidr: "192.160.0.0/12" } }] }],
      egress: [{ to: [{ ipBlock: { cidr: "2001:db8::/32", except: ["2001:db8:1::/48"] } }] }, {}],
    });
  });

  it("begins with quotas that allow nothing, and leaves the amounts to the balancer", async () => {
    const [, quota] = await register({ resourceQuotas: [{ hard: { pods: 10 }, scopes: ["NotTerminating"] }] });
    expect(quota?.inputs.manifest.spec).toEqual({ scopes: ["NotTerminating"] });
    expect(quota?.inputs.initial).toMatchObject({
      fieldManager: "kindstack-quota",
      manifest: { metadata: { name: "capsule-oil-0" }, spec: { scopes: ["NotTerminating"], hard: { pods: "0" } } },
    });
  });

  it.each([
    ["Group", "devs", { apiGroup: "rbac.authorization.k8s.io", kind: "Group", name: "devs" }],
    ["ServiceAccount", "system:serviceaccount:ci:deployer", { name: "deployer", namespace: "ci" }],
  ] as const)("makes the owner %s %s admin and deleter of the namespace", async (kind, name, subject) => {
    const owner = { kind, name };
    const bindings = (await register({ owner })).filter(({ inputs }) => inputs.manifest.kind === "RoleBinding");
    expect(bindings.map(({ inputs }) => inputs.manifest)).toMatchObject([
      { metadata: { name: "capsule-oil-0" }, roleRef: { name: "admin" }, subjects: [subject] },
      { metadata: { name: "capsule-oil-1" }, roleRef: { name: "capsule-namespace-deleter" }, subjects: [subject] },
    ]);
  });

  describe("keeps on the first RoleBinding of a namespace who had rights in it, and has them no longer", () => {
    const live = (index: number, subjects: object[], annotations?: Record<string, string>): LiveObject => {
      const name = `capsule-oil-${index}`;
      const { metadata, ...rest } = object("RoleBinding", "oil-dev", name, { [ROLE_BINDING_LABEL]: String(index) });
      return { ...rest, metadata: { ...metadata, ...(annotations && { annotations }) }, subjects };
    };
    const user = (name: string) => ({ kind: "User", name });
    const keptWith = async (owned: LiveObject[]) =>
      (await manifestOf("rolebinding/oil-dev/0", {}, [enforced("oil-dev")], owned))?.metadata.annotations;
    const account = { kind: "ServiceAccount", name: "ci", namespace: "x" };
    const ten = Array.from({ length: 10 }, (_, index) => `User ${index}`);
    const kept = (...names: string[]) => ({ "kindstack.dev/former-subjects": JSON.stringify(names) });

    it.each([
      ["nothing, while all keep them", [live(0, [user("alice")])], undefined],
      ["a former owner", [live(0, [user("bob")])], kept("User bob")],
      ["one of another RoleBinding", [live(0, [user("alice")]), live(2, [account])], kept("ServiceAccount x/ci")],
      ["those that were kept before", [live(0, [user("bob")], kept("User carl"))], kept("User carl", "User bob")],
      ["not one who has rights again", [live(0, [user("bob")], kept("User alice"))], kept("User bob")],
      ["ten at most, the last ones", [live(0, [user("bob")], kept(...ten))], kept(...ten.slice(1), "User bob")],
      ["nothing of what is no list", [live(0, [user("alice")], { "kindstack.dev/former-subjects": "{" })], undefined],
    ])("%s", async (_, owned, expected) => {
      expect(await keptWith(owned)).toEqual(expected);
    });

    it("nothing by a RoleBinding of a name that is not Kindstack's", async () => {
      const forged = live(0, [user("bob")]);
      expect(await keptWith([{ ...forged, metadata: { ...forged.metadata, name: "mine" } }])).toBeUndefined();
    });
  });

  it("gives no rights before the policy is seen to be enforced and the quotas to be counted", async () => {
    const all = counted("oil-dev", sample.spec);

    expect(await roles(sample.spec, [labelled("oil-dev")], all)).toEqual([]);
    expect(await roles(sample.spec, [enforced("oil-dev", "uid-of-another-tenant")], all)).toEqual([]);
    expect(await roles(sample.spec, [enforced("oil-dev")], all.slice(1))).toEqual([]);
    expect(await roles(sample.spec, [enforced("oil-dev")], all)).toHaveLength(2);
  });

  it("gives rights at once in a tenant that restricts nothing", async () => {
    expect(await roles({}, [labelled("oil-dev")])).toHaveLength(2);
  });

  it("keeps rights that were given, whatever is restricted later", async () => {
    const given = object("RoleBinding", "oil-dev", "capsule-oil-1", { "capsule.clastix.io/role-binding": "1" });
    expect(await roles(sample.spec, [labelled("oil-dev")], [given])).toHaveLength(2);
  });

  it("binds a cordoned tenant to the policy of those", async () => {
    expect(await names({ cordoned: true }, [])).toEqual(["policy/capsule-cordon-oil"]);
  });

  it("binds further roles after the owner's", async () => {
    const subjects = [{ kind: "Group" as const, name: "auditors" }];
    const additionalRoleBindings = [{ clusterRoleName: "view", subjects }];
    const manifest = await manifestOf("rolebinding/oil-dev/2", { additionalRoleBindings });
    expect(manifest).toMatchObject({ metadata: { name: "capsule-oil-2" }, roleRef: { name: "view" }, subjects });
  });
});
