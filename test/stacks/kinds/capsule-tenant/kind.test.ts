import { describe, expect, it } from "vitest";
import { TerminalError } from "../../../../providers/errors";
import type { LiveObject } from "../../../../providers/kubernetes/client";
import { OWNER_UID_LABEL } from "../../../../providers/kubernetes/ownership";
import { customResourceDefinition } from "../../../../stacks/contract/crd";
import { parseObject } from "../../../../stacks/contract/kind";
import { capsuleTenant } from "../../../../stacks/kinds/capsule-tenant/kind";
import { tenantsOf } from "../../../../stacks/kinds/capsule-tenant/namespaces";
import type { CapsuleTenantSpec } from "../../../../stacks/kinds/capsule-tenant/schema";
import { labelled, object, oil, oilTenant, sample } from "./objects";

const member = (name: string) =>
  labelled(name, "oil", { labels: { "capsule.clastix.io/tenant": "oil", [OWNER_UID_LABEL]: oil.uid } });
const given = (namespace: string) =>
  object("RoleBinding", namespace, "capsule-oil-0", { "capsule.clastix.io/role-binding": "0" });
const heldBy = (message: string) => ({ conditions: [{ type: "NamespaceContentRemaining", status: "True", message }] });

const { conditions, liveState } = capsuleTenant.capabilities;
const conditionOf = (type: string, owned: LiveObject[], tenant = oilTenant()) =>
  conditions?.(tenant, owned, undefined).find((condition) => condition.type === type);
const needsReconcile = (owned: LiveObject[], watched: LiveObject[] = [], tenant = oilTenant()) =>
  liveState?.needsReconcile(tenant, owned, watched);
const withMetadata = <T extends LiveObject>(object: T, metadata: object): T => ({
  ...object,
  metadata: { ...object.metadata, ...metadata },
});
const cordon = object("ValidatingAdmissionPolicyBinding", "", "capsule-cordon-oil");
const cordoned = { labels: { "capsule.clastix.io/cordon": "enabled" } };

describe("Capsule's Tenant", () => {
  it("takes the source's sample", () => {
    expect(parseObject(capsuleTenant, sample)).toBe(sample);
  });

  it.each<Partial<CapsuleTenantSpec>>([
    { owner: { kind: "ServiceAccount", name: "system:serviceaccount:ci:deployer" } },
    { resourceQuotas: [{ hard: { pods: 10, "limits.cpu": "1.5", "requests.memory": "1e9" } }] },
    { externalServiceIPs: { allowed: ["10.0.0.1", "10.0.0.0/8", "fd00::/8"] } },
    { ingressClasses: { allowedRegex: "(?i)^oil-" } },
  ])("accepts %o", (spec) => {
    expect(parseObject(capsuleTenant, oilTenant(spec)).spec).toMatchObject(spec);
  });

  it.each<[object, string]>([
    [{ owner: { kind: "Robot", name: "r2" } }, 'spec.owner.kind: "Robot" must be one of "User", "Group"'],
    [{ owner: { kind: "ServiceAccount", name: "ci" } }, 'spec.owner.name: "ci" must be system:serviceaccount:'],
    [{ namespaceQuota: 0 }, "spec.namespaceQuota: 0 must be >= 1"],
    [{ resourceQuotas: [{ hard: { pods: "ten" } }] }, 'spec.resourceQuotas.0.hard.pods: "ten" must match pattern'],
    [{ resourceQuotas: [{ hard: { pods: -1 } }] }, "spec.resourceQuotas.0.hard.pods: -1 must be >= 0"],
    [{ externalServiceIPs: { allowed: ["10.0.0.0/33"] } }, 'spec.externalServiceIPs.allowed.0: "10.0.0.0/33" must be'],
    [
      { networkPolicies: [{ podSelector: {}, egress: [{ to: [{ ipBlock: { cidr: "10.0.0.0" } }] }] }] },
      'spec.networkPolicies.0: "10.0.0.0" must be a CIDR',
    ],
    [
      { namespacesMetadata: { additionalLabels: { "capsule.clastix.io/tenant": "gas" } } },
      'spec.namespacesMetadata.additionalLabels: "capsule.clastix.io/tenant" is set by Kindstack',
    ],
  ])("refuses %o naming the field", (spec, message) => {
    const object = { ...oilTenant(), spec: { ...oilTenant().spec, ...spec } } as LiveObject;
    expect(() => parseObject(capsuleTenant, object)).toThrow(TerminalError);
    expect(() => parseObject(capsuleTenant, object)).toThrow(message);
  });

  it("refuses Capsule's annotation with a scope that there is not, naming what is allowed", () => {
    const annotations = { "ingress.capsule.clastix.io/hostname-collision-scope": "tenant" };
    const message =
      'metadata.annotations.ingress.capsule.clastix.io/hostname-collision-scope: "tenant" must be one of Cluster, Tenant';
    expect(() => parseObject(capsuleTenant, withMetadata(oilTenant(), { annotations }))).toThrow(message);
  });

  it("has a schema that a CRD can have: no patterns for the keys of maps", () => {
    expect(JSON.stringify(customResourceDefinition(capsuleTenant))).not.toContain("patternProperties");
  });

  it("is updated for labels and annotations that its policies and namespaces depend on", () => {
    const needs = (metadata: object, owned: LiveObject[] = [member("oil-a")]) =>
      needsReconcile(owned, [], withMetadata(oilTenant(), metadata))?.filter((what) => !/rights|enforced/.test(what));
    expect(needs({})).toEqual([]);
    expect(needs(cordoned)).toEqual(["policy binding capsule-cordon-oil is missing"]);
    expect(needs(cordoned, [member("oil-a"), cordon])).toEqual([]);
    expect(needs({}, [member("oil-a"), cordon])).toEqual(["policy binding capsule-cordon-oil is not needed"]);
    expect(needs({ annotations: { "capsule.clastix.io/enable-node-ports": "false" } })).toHaveLength(1);
    const forbidding = { annotations: { "capsule.clastix.io/forbidden-namespace-labels": "team" } };
    expect(needs(forbidding)).toEqual(["namespace oil-a has other rules"]);
  });

  const deletionTimestamp = "2026-01-01T00:00:00Z";
  const status = heldBy("configmaps. has 1 resource instances");
  const ending = { ...withMetadata(member("oil-old"), { deletionTimestamp }), status };

  it("reports the namespaces that count in its quota, also those that are being deleted, with what holds these", () => {
    const owned = [member("oil-b"), member("oil-a"), ending, labelled("gas-a", "gas"), labelled("kube-x")];
    expect(capsuleTenant.report(oilTenant(), owned)).toEqual({ size: 3, namespaces: ["oil-a", "oil-b", "oil-old"] });
    expect(conditionOf("NamespacesTerminating", owned)).toMatchObject({
      status: "True",
      reason: "Terminating",
      message: "Namespace oil-old is being deleted and waits for: configmaps. has 1 resource instances",
    });
    expect(conditionOf("NamespacesTerminating", [member("oil-a")])).toMatchObject({ status: "False" });
  });

  it("tells who lost rights in its namespaces, and nothing of what users mark elsewhere", () => {
    const annotations = { "kindstack.dev/former-subjects": '["User bob"]' };
    const toldOf = (namespace: string) =>
      conditionOf("FormerSubjects", [member("oil-a"), withMetadata(given(namespace), { annotations })]);
    expect(toldOf("oil-a")).toMatchObject({
      status: "True",
      reason: "RightsTaken",
      message: expect.stringMatching(/^User bob had rights in oil-a\. .*-n oil-a kindstack\.dev\/former-subjects-$/),
    });
    expect(toldOf("gas-a")).toMatchObject({ status: "False", reason: "Settled" });
  });

  it("says of no owner that they have rights while their RoleBindings go with the tenant", () => {
    const deleted = withMetadata(oilTenant(), { deletionTimestamp });
    const enforcedOf = (owned: LiveObject[]) => conditionOf("Enforced", owned, deleted);
    expect(enforcedOf([member("oil-a"), given("oil-a")])).toMatchObject({ status: "True" }); // its deletion waits
    expect(enforcedOf([member("oil-a"), given("oil-a"), member("oil-b")])).toMatchObject({ reason: "Deleting" });
    expect(enforcedOf([ending])).toMatchObject({ status: "False", reason: "Deleting" });
  });

  it("wants an update when a namespace came or left, and none when only a label was taken off", () => {
    expect(needsReconcile([], [labelled("oil-a")])).toEqual(["namespace oil-a is new"]);
    expect(needsReconcile([member("oil-a"), given("oil-a")], [])).toEqual([]);
    const labels = { ...member("oil-a").metadata.labels, [OWNER_UID_LABEL]: "a predecessor's" };
    const inherited = withMetadata(member("oil-a"), { labels });
    expect(needsReconcile([inherited], [inherited])).toEqual(["namespace oil-a is new"]);
    expect(needsReconcile([labelled("oil-a", "gas")], [])).toEqual(["namespace oil-a has left"]);
  });

  it("wants an update when an owner may have rights by now, and says so in a condition until then", () => {
    const tenant = oilTenant({ storageClasses: { allowed: ["fast"] } });
    const seen = withMetadata(member("oil-a"), { annotations: { "kindstack.dev/enforced-tenant": oil.uid } });
    const binding = object("ValidatingAdmissionPolicyBinding", "", "capsule-tenants-oil");
    const needs = (...owned: LiveObject[]) => needsReconcile([binding, ...owned], [], tenant);

    expect(needs(member("oil-a"))).toEqual([]);
    expect(needs(seen)).toEqual(["namespace oil-a is enforced and counted"]);
    expect(needs(seen, given("oil-a"))).toEqual([]);
    const unseen = { status: "False", message: expect.stringContaining("oil-a") };
    expect(conditionOf("Enforced", [member("oil-a")], tenant)).toMatchObject(unseen);
    expect(conditionOf("Enforced", [seen, given("oil-a")], tenant)).toMatchObject({ status: "True" });
  });

  it("says in a condition which Ingresses came together with older ones, while host names are compared", () => {
    const annotations = { "kindstack.dev/host-collisions": JSON.stringify({ web: "x.org/ of gas-a/web" }) };
    const owned = [withMetadata(member("oil-a"), { annotations }), given("oil-a")];
    const enforcedOf = (spec: Partial<CapsuleTenantSpec>) => conditionOf("Enforced", owned, oilTenant(spec));

    expect(enforcedOf({ hostnameCollisionScope: "Cluster" })).toMatchObject({
      status: "False",
      reason: "HostCollision",
      message: expect.stringContaining("oil-a/web takes x.org/ of gas-a/web"),
    });
    expect(enforcedOf({})).toMatchObject({ status: "True" });
  });

  it("is cordoned in the words of its binding, by field or by Capsule's label", () => {
    const statusOf = (tenant: ReturnType<typeof oilTenant>, owned: LiveObject[]) =>
      conditionOf("Cordoned", owned, tenant)?.status;

    expect(statusOf(oilTenant(), [])).toBe("False");
    expect(statusOf(oilTenant({ cordoned: true }), [])).toBe("False");
    expect(statusOf(oilTenant({ cordoned: true }), [cordon])).toBe("True");
    expect(statusOf(withMetadata(oilTenant(), cordoned), [cordon])).toBe("True");
  });
});

it("a namespace with a tenant's label is that tenant's", () => {
  expect(tenantsOf(labelled("oil-a"))).toEqual(["oil"]);
});
