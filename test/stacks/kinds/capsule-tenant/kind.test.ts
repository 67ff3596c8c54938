import { describe, expect, it } from "vitest";
import { TerminalError } from "../../../../providers/errors";
import type { LiveObject } from "../../../../providers/kubernetes/client";
import { OWNER_UID_LABEL } from "../../../../providers/kubernetes/ownership";
import { customResourceDefinition } from "../../../../stacks/contract/crd";
import { parseObject } from "../../../../stacks/contract/kind";
import type { KindObject } from "../../../../stacks/contract/object";
import { capsuleTenant } from "../../../../stacks/kinds/capsule-tenant/kind";
import { tenantsOf } from "../../../../stacks/kinds/capsule-tenant/namespaces";
import type { CapsuleTenantSpec } from "../../../../stacks/kinds/capsule-tenant/schema";
import { labelled, object, oil, oilTenant, sample } from "./objects";

const member = (name: string) =>
  labelled(name, "oil", { labels: { "capsule.clastix.io/tenant": "oil", [OWNER_UID_LABEL]: oil.uid } });
const given = (namespace: string) =>
  object("RoleBinding", namespace, "capsule-oil-0", { "capsule.clastix.io/role-binding": "0" });
const heldBy = (message: string) => ({ conditions: [{ type: "NamespaceContentRemaining", status: "True", message }] });

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
    const object = { ...oilTenant(), metadata: { ...oilTenant().metadata, annotations } } as LiveObject;
    expect(() => parseObject(capsuleTenant, object)).toThrow(
      'metadata.annotations.ingress.capsule.clastix.io/hostname-collision-scope: "tenant" must be one of Cluster, Tenant',
    );
  });

  it("has a schema that a CRD can have: no patterns for the keys of maps", () => {
    expect(JSON.stringify(customResourceDefinition(capsuleTenant))).not.toContain("patternProperties");
  });

  it("is updated for labels and annotations that its policies and namespaces depend on", () => {
    const needs = (metadata: object, owned: LiveObject[] = [member("oil-a")]) => {
      const tenant = oilTenant();
      const changed = { ...tenant, metadata: { ...tenant.metadata, ...metadata } };
      return capsuleTenant.capabilities.liveState
        ?.needsReconcile(changed, owned, [])
        .filter((what) => !/rights|enforced/.test(what));
    };
    const cordon = object("ValidatingAdmissionPolicyBinding", "", "capsule-cordon-oil");
    const cordoned = { labels: { "capsule.clastix.io/cordon": "enabled" } };
    expect(needs({})).toEqual([]);
    expect(needs(cordoned)).toEqual(["policy binding capsule-cordon-oil is missing"]);
    expect(needs(cordoned, [member("oil-a"), cordon])).toEqual([]);
    expect(needs({}, [member("oil-a"), cordon])).toEqual(["policy binding capsule-cordon-oil is not needed"]);
    expect(needs({ annotations: { "capsule.clastix.io/enable-node-ports": "false" } })).toHaveLength(1);
    const forbidding = { annotations: { "capsule.clastix.io/forbidden-namespace-labels": "team" } };
    expect(needs(forbidding)).toEqual(["namespace oil-a has other rules"]);
  });

  const ending = { ...member("oil-old"), status: heldBy("configmaps. has 1 resource instances") };
  ending.metadata = { ...ending.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" };

  it("reports the namespaces that count in its quota, also those that are being deleted, with what holds these", () => {
    const owned = [member("oil-b"), member("oil-a"), ending, labelled("gas-a", "gas"), labelled("kube-x")];
    expect(capsuleTenant.report(oilTenant(), owned)).toEqual({ size: 3, namespaces: ["oil-a", "oil-b", "oil-old"] });
    const conditionsOf = (owned: LiveObject[]) =>
      capsuleTenant.capabilities
        .conditions?.(oilTenant(), owned, undefined)
        .filter(({ type }) => type === "NamespacesTerminating");
    expect(conditionsOf(owned)).toEqual([
      {
        type: "NamespacesTerminating",
        status: "True",
        reason: "Terminating",
        message: "Namespace oil-old is being deleted and waits for: configmaps. has 1 resource instances",
      },
    ]);
    expect(conditionsOf([member("oil-a")])).toMatchObject([{ status: "False" }]);
  });

  it("tells who lost rights in its namespaces, and nothing of what users mark elsewhere", () => {
    const toldOf = (owned: LiveObject[]) =>
      capsuleTenant.capabilities
        .conditions?.(oilTenant(), owned, undefined)
        .find(({ type }) => type === "FormerSubjects");
    const former = (namespace: string): LiveObject => {
      const labels = { "capsule.clastix.io/role-binding": "0" };
      const binding = object("RoleBinding", namespace, "capsule-oil-0", labels);
      binding.metadata.annotations = { "kindstack.dev/former-subjects": '["User bob"]' };
      return binding;
    };
    expect(toldOf([member("oil-a"), former("oil-a")])).toMatchObject({
      status: "True",
      reason: "RightsTaken",
      message: expect.stringMatching(/^User bob had rights in oil-a\. .*-n oil-a kindstack\.dev\/former-subjects-$/),
    });
    expect(toldOf([member("oil-a"), former("gas-a")])).toMatchObject({ status: "False", reason: "Settled" });
  });

  it("says of no owner that they have rights while their RoleBindings go with the tenant", () => {
    const tenant = oilTenant();
    const deleted = { ...tenant, metadata: { ...tenant.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } };
    const enforcedOf = (owned: LiveObject[]) =>
      capsuleTenant.capabilities.conditions?.(deleted, owned, undefined).find(({ type }) => type === "Enforced");
    expect(enforcedOf([member("oil-a"), given("oil-a")])).toMatchObject({ status: "True" }); // its deletion waits
    expect(enforcedOf([member("oil-a"), given("oil-a"), member("oil-b")])).toMatchObject({ reason: "Deleting" });
    expect(enforcedOf([ending])).toMatchObject({ status: "False", reason: "Deleting" });
  });

  it("wants an update when a namespace came or left, and none when only a label was taken off", () => {
    const needsReconcile = (owned: LiveObject[], watched: LiveObject[]) =>
      capsuleTenant.capabilities.liveState?.needsReconcile(oilTenant(), owned, watched);
    expect(needsReconcile([], [labelled("oil-a")])).toEqual(["namespace oil-a is new"]);
    expect(needsReconcile([member("oil-a"), given("oil-a")], [])).toEqual([]);
    const restored = labelled("oil-a");
    const labels = { ...restored.metadata.labels, [OWNER_UID_LABEL]: "a predecessor's" };
    const inherited = { ...restored, metadata: { ...restored.metadata, labels } };
    expect(needsReconcile([inherited], [inherited])).toEqual(["namespace oil-a is new"]);
    expect(needsReconcile([labelled("oil-a", "gas")], [])).toEqual(["namespace oil-a has left"]);
  });

  it("wants an update when an owner may have rights by now, and says so in a condition until then", () => {
    const spec = { storageClasses: { allowed: ["fast"] } };
    const seen = { ...member("oil-a") };
    seen.metadata = { ...seen.metadata, annotations: { "kindstack.dev/enforced-tenant": oil.uid } };
    const binding = object("ValidatingAdmissionPolicyBinding", "", "capsule-tenants-oil");
    const needsReconcile = (owned: LiveObject[]) =>
      capsuleTenant.capabilities.liveState?.needsReconcile(oilTenant(spec), [binding, ...owned], []);
    const conditions = (owned: LiveObject[]) =>
      capsuleTenant.capabilities.conditions?.(oilTenant(spec), owned, undefined);

    expect(needsReconcile([member("oil-a")])).toEqual([]);
    expect(needsReconcile([seen])).toEqual(["namespace oil-a is enforced and counted"]);
    expect(needsReconcile([seen, given("oil-a")])).toEqual([]);
    expect(conditions([member("oil-a")])).toContainEqual(
      expect.objectContaining({ type: "Enforced", status: "False", message: expect.stringContaining("oil-a") }),
    );
    expect(conditions([seen, given("oil-a")])).toContainEqual(
      expect.objectContaining({ type: "Enforced", status: "True" }),
    );
  });

  it("says in a condition which Ingresses came together with older ones, while host names are compared", () => {
    const namespace = { ...member("oil-a") };
    const annotations = { "kindstack.dev/host-collisions": JSON.stringify({ web: "x.org/ of gas-a/web" }) };
    namespace.metadata = { ...namespace.metadata, annotations };
    const enforcedOf = (spec: Partial<CapsuleTenantSpec>) =>
      capsuleTenant.capabilities
        .conditions?.(oilTenant(spec), [namespace, given("oil-a")], undefined)
        .find(({ type }) => type === "Enforced");

    expect(enforcedOf({ hostnameCollisionScope: "Cluster" })).toMatchObject({
      status: "False",
      reason: "HostCollision",
      message: expect.stringContaining("oil-a/web takes x.org/ of gas-a/web"),
    });
    expect(enforcedOf({})).toMatchObject({ status: "True" });
  });

  it("is cordoned in the words of its binding, by field or by Capsule's label", () => {
    const binding = object("ValidatingAdmissionPolicyBinding", "", "capsule-cordon-oil");
    const statusOf = (tenant: KindObject<CapsuleTenantSpec>, owned: LiveObject[]) =>
      capsuleTenant.capabilities.conditions?.(tenant, owned, undefined).find(({ type }) => type === "Cordoned")?.status;
    const labelledTenant = oilTenant();
    labelledTenant.metadata.labels = { "capsule.clastix.io/cordon": "enabled" };

    expect(statusOf(oilTenant(), [])).toBe("False");
    expect(statusOf(oilTenant({ cordoned: true }), [])).toBe("False");
    expect(statusOf(oilTenant({ cordoned: true }), [binding])).toBe("True");
    expect(statusOf(labelledTenant, [binding])).toBe("True");
  });
});

it("a namespace with a tenant's label is that tenant's", () => {
  expect(tenantsOf(labelled("oil-a"))).toEqual(["oil"]);
});
