import { afterEach, describe, expect, it, vi } from "vitest";
import type { LiveObject, Manifest } from "../../../../providers/kubernetes/client";
import {
  namespaceWebhook,
  restoredNamespaceWebhook,
} from "../../../../stacks/kinds/capsule-tenant/admission/namespaces";
import { TENANT_LABEL } from "../../../../stacks/kinds/capsule-tenant/labels";
import { liveObject, namespace } from "../../../objects";
import { bindingFor, userNamed } from "../../../rights";
import { admissionView, creation } from "./admission-view";
import { labelled, oilTenant, tenantNamed } from "./objects";

const CAPSULE = "capsule.clastix.io/v1alpha1";
const ROBOT = "system:serviceaccount:ci:robot";

type Metadata = Partial<Manifest["metadata"]>;
type Objects = Parameters<typeof admissionView>[0];

/** What becomes of a new namespace in a cluster with these objects. */
function review(objects: Objects, metadata: Metadata, username = "alice", groups = ["drillers"]) {
  const object: Manifest = { apiVersion: "v1", kind: "Namespace", metadata };
  return namespaceWebhook().review(creation(object, { user: { username, groups } }), admissionView(objects));
}
const of = (tenant: string) => ({ labels: { [TENANT_LABEL]: tenant } });
const [oil, gas] = [oilTenant(), tenantNamed("gas")];
const prefixed = ["awesome", "awesome-tenant"].map((name) => tenantNamed(name, { forceTenantPrefix: true }));
const ownedBy = (kind: "Group" | "ServiceAccount", name: string) => oilTenant({ owner: { kind, name } });
const foreign = tenantNamed("gas", { owner: { kind: "User", name: "bob" } });
const cordoned = { ...oil, metadata: { ...oil.metadata, labels: { "capsule.clastix.io/cordon": "enabled" } } };
const reference = (name: string, uid: string, kind = "Tenant") => {
  const apiVersion = kind === "Tenant" ? CAPSULE : "v1";
  return { ownerReferences: [{ apiVersion, kind, name, uid }] };
};

afterEach(() => void vi.unstubAllEnvs());

const given = (tenant: string) => [
  { op: "add", path: "/metadata/labels", value: {} },
  { op: "add", path: "/metadata/labels/capsule.clastix.io~1tenant", value: tenant },
];
const released = [...given("oil"), { op: "remove", path: "/metadata/ownerReferences" }];

it.each<[string, LiveObject[], Metadata, object[], string?]>([
  ["its owner's one", [oil, foreign], { name: "dev" }, given("oil")],
  ["the one that its label names", [oil, gas], { name: "dev", ...of("gas") }, []],
  ["the one whose name it begins with", prefixed, { name: "awesome-namespace" }, given("awesome")],
  ["the closest one, of two", prefixed, { name: "awesome-tenant-namespace" }, given("awesome-tenant")],
  ["no closer one than its name says", prefixed, { name: "awesome-tenant" }, given("awesome")],
  ["the one of its maker's group", [ownedBy("Group", "drillers"), foreign], { name: "dev" }, given("oil")],
  ["the one of a ServiceAccount", [ownedBy("ServiceAccount", ROBOT), foreign], { name: "dev" }, given("oil"), ROBOT],
  ["the one that it was in, as a backup has it", [oil], { name: "dev", ...reference("oil", "former") }, released],
])("the tenant of a new namespace is %s", async (_, tenants, metadata, patch, user) => {
  expect(await review({ tenants }, metadata, user)).toEqual({ allowed: true, patch });
});

it.each<[string, LiveObject[], Metadata, string]>([
  ["of an owner of several that names none", [gas, oil], { name: "dev" }, "must name one of gas, oil"],
  ["of an owner of nothing", [foreign], { name: "dev" }, "alice owns no tenant"],
  ["of another owner's tenant", [oil, foreign], { name: "dev", ...of("gas") }, "does not own a tenant gas, but oil"],
  ["of a tenant that does not exist", [oil], { name: "dev", ...of("none") }, "does not own a tenant none, but oil"],
  ["of no prefix of several", prefixed, { name: "other" }, "must name one of awesome, awesome-tenant"],
  ["without its tenant's prefix", prefixed, { name: "other", ...of("awesome") }, 'begin with "awesome-"'],
  ["owned by another tenant", [oil], { name: "dev", ...reference("gas", "uid-gas") }, "cannot be owned by Tenant gas"],
  ["owned by what outlives its tenant", [oil], { name: "dev", ...reference("n", "u", "Node") }, "by Node n as well"],
  ["with a protected name", [oil], { name: "kube-more" }, "the operator protects kube-*, default, kindstack-system"],
  ["with a name that the configuration protects", [oil], { name: "kindstack-system" }, "cannot be a tenant's"],
  ["with a generated name that is protected", [oil], { generateName: "kube-" }, "(KINDSTACK_PROTECTED_NAMESPACES)"],
  ["of a cordoned tenant", [oilTenant({ cordoned: true })], { name: "dev" }, "the tenant oil is cordoned"],
  ["of one that Capsule's label cordons", [cordoned], { name: "dev" }, "the tenant oil is cordoned"],
])("a namespace %s is refused", async (_, tenants, metadata, message) => {
  const refusal = { allowed: false, message: expect.stringContaining(message) };
  expect(await review({ tenants }, metadata)).toMatchObject(refusal);
});

it("a namespace whose name is taken is refused as the API server does", async () => {
  const taken = await review({ tenants: [oil], namespaces: [namespace("dev")] }, { name: "dev" });
  expect(taken).toEqual({ allowed: false, code: 409, message: "the namespace dev exists already" });
});

describe("the metadata of a new namespace", () => {
  const strict = oilTenant({
    namespacesMetadata: {
      forbiddenLabels: { denied: ["team"], deniedRegex: "^cost" },
      allowedLabels: { allowed: ["cost-center", "pod-security.kubernetes.io/warn", "kindstack.dev/owner-uid"] },
    },
  });
  strict.metadata.annotations = { "capsule.clastix.io/forbidden-namespace-annotations": "note, remark" };

  it.each<[keyof Metadata & ("labels" | "annotations"), string, boolean]>([
    ["labels", "pod-security.kubernetes.io/enforce", false],
    ["labels", "kindstack.dev/owner-uid", false],
    ["labels", "team", false],
    ["labels", "costs", false],
    ["labels", "pod-security.kubernetes.io/warn", true],
    ["labels", "cost-center", true],
    ["labels", "app.kubernetes.io/name", true],
    ["annotations", "scheduler.alpha.kubernetes.io/node-selector", false],
    ["annotations", "kindstack.dev/enforced-tenant", false],
    ["annotations", "kindstack.dev/host-collisions", false],
    ["annotations", "remark", false],
    ["annotations", "kubectl.kubernetes.io/last-applied-configuration", true],
    ["annotations", "description", true],
  ])("%s: %s, allowed is %s", async (map, key, allowed) => {
    const decision = await review({ tenants: [strict] }, { name: "dev", [map]: { [key]: "x" } });
    const message = `the ${map} ${key} cannot be set on a namespace of the tenant oil by its owner`;
    expect(decision).toMatchObject(allowed ? { allowed } : { allowed, message });
  });
});

describe("the home of accounts that have rights elsewhere", () => {
  const account = { kind: "ServiceAccount" as const, name: "robot", namespace: "home" };
  const group = { kind: "Group" as const, name: "system:serviceaccounts:home" };
  const user = userNamed("system:serviceaccount:home:robot");
  const bound = (subject: object, namespace?: string) => {
    const place = { name: "binding", ...(namespace !== undefined && { namespace }) };
    return [bindingFor([subject as typeof user], "view", place) as LiveObject];
  };
  const giving = (tenant: typeof oil, subject: typeof account | typeof group) => {
    const additionalRoleBindings = [{ clusterRoleName: "view", subjects: [subject] }];
    return { ...tenant, spec: { ...tenant.spec, additionalRoleBindings } };
  };
  const owner = { kind: "ServiceAccount", name: user.name } as const;
  const otherKind = liveObject({ kind: "Tenant", metadata: { name: "acme" }, spec: { adminGroups: [group.name] } });

  it.each<[string, Objects, boolean]>([
    ["by a ClusterRoleBinding", { clusterRoleBindings: bound(account) }, false],
    ["by a ClusterRoleBinding of their group", { clusterRoleBindings: bound(group) }, false],
    ["by a RoleBinding in a namespace of no tenant", { roleBindings: bound(user, "elsewhere") }, false],
    ["by a RoleBinding in a tenant's, whose owner may make any", { roleBindings: bound(account, "gas-a") }, true],
    ["by the groups of another kind's Tenant", { otherTenants: [otherKind] }, false],
    ["by another tenant, as its owner", { tenants: [oil, tenantNamed("gas", { owner })] }, false],
    ["by another tenant's bindings", { tenants: [oil, giving(foreign, account)] }, false],
    ["by another tenant's, of their group", { tenants: [oil, giving(foreign, group)] }, false],
    ["by its own tenant alone", { tenants: [giving(oil, account)] }, true],
  ])("is made by no owner: %s", async (_, objects, allowed) => {
    const decision = await review(
      { tenants: [oil], namespaces: [labelled("gas-a", "gas")], ...objects },
      { name: "home" },
    );
    const message = "the namespace home is the home of accounts that have rights elsewhere";
    expect(decision).toMatchObject(allowed ? { allowed } : { allowed, message });
  });

  it.each(["KINDSTACK_CAPSULE_USER_GROUPS", "KINDSTACK_CAPSULE_CORDON_EXEMPT"])(
    "is made by no owner: by %s",
    async (name) => {
      vi.stubEnv(name, group.name);
      expect(await review({ tenants: [oil] }, { name: "home" })).toMatchObject({ allowed: false });
    },
  );
});

it("a restored namespace loses its references to tenants, and no others", () => {
  const review = (metadata: Metadata) => {
    const object: Manifest = { apiVersion: "v1", kind: "Namespace", metadata: { name: "dev", ...metadata } };
    return restoredNamespaceWebhook().review(creation(object), admissionView({}));
  };
  const [tenant, node] = [reference("gone", "u").ownerReferences, reference("n", "v", "Node").ownerReferences];
  const path = "/metadata/ownerReferences";
  expect(review({ ownerReferences: [...tenant, ...node] })).toEqual({
    allowed: true,
    patch: [{ op: "add", path, value: node }],
  });
  expect(review({ ownerReferences: node })).toEqual({ allowed: true });
});
