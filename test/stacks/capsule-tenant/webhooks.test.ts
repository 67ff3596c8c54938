import { describe, expect, it } from "vitest";
import type { LiveObject, Manifest } from "../../../providers/kubernetes/client";
import {
  endpointsOf,
  hostnamesOf,
  ingressCollisionWebhook,
  tenantHostnamesWebhook,
} from "../../../stacks/capsule-tenant/admission/hostnames";
import { servicesMetadataWebhook } from "../../../stacks/capsule-tenant/admission/services-metadata";
import type { CapsuleTenantSpec } from "../../../stacks/capsule-tenant/schema";
import type { AdmissionRequest, AdmissionView, AdmissionWebhook } from "../../../stacks/contract/admission";
import { labelled, oilTenant } from "./objects";

/** What the caches of the webhooks hold. */
function view({ tenants, ingresses = [] }: { tenants: LiveObject[]; ingresses?: Manifest[] }): AdmissionView {
  const namespaces = ["oil-dev", "oil-prod"].map((name) => labelled(name)).concat(labelled("gas-dev", "gas"));
  const indexes: Record<string, (value: string) => LiveObject[]> = {
    hostname: (host) => tenants.filter((tenant) => hostnamesOf(tenant).includes(host)),
    endpoint: (endpoint) => (ingresses as LiveObject[]).filter((ingress) => endpointsOf(ingress).includes(endpoint)),
  };
  return {
    get: (watch: string, name: string) =>
      (watch === "tenants" ? tenants : namespaces).find(({ metadata }) => metadata.name === name),
    byIndex: (_watch: string, index: string, value: string) => indexes[index]?.(value) ?? [],
  } as unknown as AdmissionView;
}

const request = (object: Manifest, more: Partial<AdmissionRequest> = {}): AdmissionRequest => ({
  uid: "1",
  operation: "CREATE",
  resource: { group: "", name: "services" },
  user: { username: "alice", groups: [] },
  name: object.metadata.name ?? "",
  namespace: object.metadata.namespace ?? "",
  object,
  dryRun: false,
  ...more,
});
const tenantNamed = (name: string, spec: Partial<CapsuleTenantSpec>) => {
  const tenant = oilTenant(spec);
  return { ...tenant, metadata: { ...tenant.metadata, name } };
};
const ingress = (name: string, namespace: string, host?: string, ...paths: string[]): Manifest => ({
  apiVersion: "networking.k8s.io/v1",
  kind: "Ingress",
  metadata: { name, namespace },
  spec: {
    rules: [{ ...(host && { host }), ...(paths.length > 0 && { http: { paths: paths.map((path) => ({ path })) } }) }],
  },
});

describe("servicesMetadata", () => {
  const tenants = [
    tenantNamed("oil", {
      servicesMetadata: { additionalLabels: { "k8s.io/team": "oil" }, additionalAnnotations: { note: "mine" } },
    }),
  ];
  const service = (metadata: Partial<Manifest["metadata"]> = {}, namespace = "oil-dev"): Manifest => ({
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "web", namespace, ...metadata },
  });
  const review = (object: Manifest) => servicesMetadataWebhook().review(request(object), view({ tenants }));

  it("is put on a Service beside what it has, and in place of another value", async () => {
    expect(await review(service({ labels: { app: "web", "k8s.io/team": "gas" } }))).toEqual({
      allowed: true,
      patch: [
        { op: "add", path: "/metadata/labels/k8s.io~1team", value: "oil" },
        { op: "add", path: "/metadata/annotations", value: {} },
        { op: "add", path: "/metadata/annotations/note", value: "mine" },
      ],
    });
  });

  it("leaves what has it, and what is of another tenant, as it is", async () => {
    const whole = service({ labels: { "k8s.io/team": "oil" }, annotations: { note: "mine" } });
    expect(await review(whole)).toEqual({ allowed: true, patch: [] });
    expect(await review(service({}, "gas-dev"))).toEqual({ allowed: true, patch: [] });
  });
});

describe("a host name that another Ingress has", () => {
  const other = ingress("other", "oil-prod", "shop.example.com");
  const decide = async (
    hostnameCollisionScope: CapsuleTenantSpec["hostnameCollisionScope"],
    object: Manifest,
    more: Partial<AdmissionRequest> = {},
    webhook: AdmissionWebhook = ingressCollisionWebhook(),
  ) => {
    const spec = hostnameCollisionScope ? { hostnameCollisionScope } : {};
    const tenants = [tenantNamed("oil", spec), tenantNamed("gas", spec)];
    return (await webhook.review(request(object, more), view({ tenants, ingresses: [other] }))).allowed;
  };

  it.each([
    ["Cluster", "gas-dev", false],
    ["Cluster", "oil-dev", false],
    ["Tenant", "oil-dev", false],
    ["Tenant", "gas-dev", true],
    ["Namespace", "oil-prod", false],
    ["Namespace", "oil-dev", true],
    ["Disabled", "oil-prod", true],
    [undefined, "oil-prod", true],
  ] as const)("in the scope %s, from %s: allowed is %s", async (scope, namespace, allowed) => {
    expect(await decide(scope, ingress("new", namespace, "shop.example.com"))).toBe(allowed);
  });

  it("is another one with another path, and the same without one", async () => {
    expect(await decide("Cluster", ingress("new", "oil-dev", "shop.example.com", "/cart"))).toBe(true);
    expect(await decide("Cluster", ingress("new", "oil-dev", "shop.example.com", "/cart", "/"))).toBe(false);
  });

  it("may stay where it is: what an Ingress has already is not asked about", async () => {
    const object = ingress("new", "oil-dev", "shop.example.com");
    expect(await decide("Cluster", object, { operation: "UPDATE", oldObject: object })).toBe(true);
    expect(
      await decide("Cluster", { ...other }, { operation: "UPDATE", oldObject: ingress("other", "oil-prod") }),
    ).toBe(true);
    const before = ingress("new", "oil-dev", "old.example.com");
    expect(await decide("Cluster", object, { operation: "UPDATE", oldObject: before })).toBe(false);
  });

  it("is taken as soon as it is allowed, before any cache shows it; by a dry run it is not", async () => {
    const webhook = ingressCollisionWebhook();
    const [first, second] = ["a", "b"].map((name) => ingress(name, "oil-dev", "new.example.com")) as [
      Manifest,
      Manifest,
    ];
    expect(await decide("Cluster", first, { dryRun: true }, webhook)).toBe(true);
    expect(await decide("Cluster", second, {}, webhook)).toBe(true);
    expect(await decide("Cluster", first, {}, webhook)).toBe(false);
    expect(await decide("Cluster", second, {}, webhook)).toBe(true);
  });
});

it("a scope that there is not, in Capsule's annotation, compares nothing", async () => {
  const tenant = tenantNamed("oil", {});
  tenant.metadata.annotations = { "ingress.capsule.clastix.io/hostname-collision-scope": "tenant" };
  const ingresses = [ingress("other", "oil-prod", "shop.example.com")];
  const object = ingress("new", "oil-prod", "shop.example.com");
  const decision = await ingressCollisionWebhook().review(request(object), view({ tenants: [tenant], ingresses }));
  expect(decision).toEqual({ allowed: true });
});

it("a host name that was allowed a moment ago is taken for a tenant with another scope, too", async () => {
  const webhook = ingressCollisionWebhook();
  const tenants = [
    tenantNamed("oil", { hostnameCollisionScope: "Tenant" }),
    tenantNamed("gas", { hostnameCollisionScope: "Cluster" }),
  ];
  const decide = (object: Manifest) => webhook.review(request(object), view({ tenants }));
  expect(await decide(ingress("first", "oil-dev", "new.example.com"))).toEqual({ allowed: true });
  expect(await decide(ingress("second", "gas-dev", "new.example.com"))).toMatchObject({
    allowed: false,
    message: "another Ingress in the cluster has new.example.com/ already",
  });
});

describe("a host name that another tenant allows by name", () => {
  const hosts = (...allowed: string[]) => ({ ingressHostnames: { allowed } });
  const decide = async (object: LiveObject, other: LiveObject, oldObject?: LiveObject) =>
    tenantHostnamesWebhook().review(
      request(object, { operation: oldObject ? "UPDATE" : "CREATE", ...(oldObject && { oldObject }) }),
      view({ tenants: [other] }),
    );
  const other = tenantNamed("gas", hosts("shop.example.com"));

  it("is refused, at creation and afterwards, naming the other tenant", async () => {
    const refusal = { allowed: false, message: expect.stringContaining("is allowed in the tenant gas already") };
    expect(await decide(tenantNamed("oil", hosts("a.org", "shop.example.com")), other)).toMatchObject(refusal);
    const before = tenantNamed("oil", hosts("a.org"));
    expect(await decide(tenantNamed("oil", hosts("shop.example.com")), other, before)).toMatchObject(refusal);
  });

  it("is allowed where one of the two says so, where it was there before, and to the tenant itself", async () => {
    const disabled = { ...hosts("shop.example.com"), hostnameCollisionScope: "Disabled" as const };
    const tenant = tenantNamed("oil", hosts("shop.example.com"));
    expect(await decide(tenantNamed("oil", disabled), other)).toEqual({ allowed: true });
    expect(await decide(tenant, tenantNamed("gas", disabled))).toEqual({ allowed: true });
    expect(await decide(tenant, other, tenant)).toEqual({ allowed: true });
    expect(await decide(other, other)).toEqual({ allowed: true });
  });
});
