import { describe, expect, it } from "vitest";
import type { LiveObject, Manifest } from "../../../../providers/kubernetes/client";
import type { AdmissionRequest, AdmissionView } from "../../../../stacks/contract/admission";
import { ingressCollisionWebhook } from "../../../../stacks/kinds/capsule-tenant/admission/ingress-collisions";
import { servicesMetadataWebhook } from "../../../../stacks/kinds/capsule-tenant/admission/services-metadata";
import { tenantHostnamesWebhook } from "../../../../stacks/kinds/capsule-tenant/admission/tenant-hostnames";
import type { CapsuleTenantSpec } from "../../../../stacks/kinds/capsule-tenant/schema";
import { admissionView, creation } from "./admission-view";
import { labelled, tenantNamed } from "./objects";

/** What the caches of the webhooks hold. */
function view({ tenants, ingresses = [] }: { tenants: LiveObject[]; ingresses?: Manifest[] }): AdmissionView {
  const namespaces = ["oil-dev", "oil-prod"].map((name) => labelled(name)).concat(labelled("gas-dev", "gas"));
  namespaces.push(labelled("administrators", ""));
  delete namespaces.at(-1)?.metadata.labels;
  return admissionView({ tenants, namespaces, ingresses: ingresses as LiveObject[] });
}

const ingressOf = (name: string, namespace: string, spec: object): Manifest => ({
  apiVersion: "networking.k8s.io/v1",
  kind: "Ingress",
  metadata: { name, namespace },
  spec,
});
const ingress = (name: string, namespace: string, host?: string, ...paths: string[]) => {
  const http = { paths: paths.map((path) => ({ path })) };
  return ingressOf(name, namespace, { rules: [{ ...(host && { host }), ...(paths.length > 0 && { http }) }] });
};
const backend = (name: string, namespace: string) =>
  ingressOf(name, namespace, { defaultBackend: { service: { name: "web", port: { number: 80 } } } });

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
  const review = (object: Manifest) => servicesMetadataWebhook().review(creation(object), view({ tenants }));

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
    ingresses: Manifest[] = [other],
  ) => {
    const spec = hostnameCollisionScope ? { hostnameCollisionScope } : {};
    const tenants = [tenantNamed("oil", spec), tenantNamed("gas", spec)];
    return (await ingressCollisionWebhook().review(creation(object, more), view({ tenants, ingresses }))).allowed;
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

  it("is held by no review, whatever becomes of its request", async () => {
    const spec = { hostnameCollisionScope: "Cluster" as const };
    const tenants = [tenantNamed("oil", spec), tenantNamed("gas", spec)];
    const [webhook, shown] = [ingressCollisionWebhook(), view({ tenants, ingresses: [] })];
    for (const namespace of ["oil-dev", "gas-dev", "oil-dev"]) {
      const object = ingress("new", namespace, "shop.example.com");
      expect(await webhook.review(creation(object), shown)).toEqual({ allowed: true });
    }
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

  it.each<[string, Manifest, Manifest]>([
    ["a slash at the end", ingress("a", "oil-prod", "x.org", "/api"), ingress("b", "oil-dev", "x.org", "/api/")],
    ["two slashes", ingress("a", "oil-prod", "x.org", "/api/v1"), ingress("b", "oil-dev", "x.org", "//api//v1")],
    ["an encoded letter", ingress("a", "oil-prod", "x.org", "/api"), ingress("b", "oil-dev", "x.org", "/%61pi")],
    ["dots", ingress("a", "oil-prod", "x.org", "/api"), ingress("b", "oil-dev", "x.org", "/x/../api/.")],
    ["an asterisk", ingress("a", "oil-prod", "x.org"), ingress("b", "oil-dev", "x.org", "/*")],
    ["a wildcard above it", ingress("a", "oil-prod", "www.x.org"), ingress("b", "oil-dev", "*.x.org")],
    ["a host below its wildcard", ingress("a", "oil-prod", "*.x.org"), ingress("b", "oil-dev", "a.www.x.org")],
    ["a wildcard below a wildcard", ingress("a", "oil-prod", "*.x.org"), ingress("b", "oil-dev", "*.www.x.org")],
    ["a rule for all hosts", ingress("a", "oil-prod", "x.org", "/api"), ingress("b", "oil-dev", undefined, "/api")],
    ["a host of an Ingress for all", ingress("a", "oil-prod"), ingress("b", "oil-dev", "x.org")],
    ["a second default backend", backend("a", "oil-prod"), backend("b", "oil-dev")],
    ["a default backend beside a rule for all hosts", ingress("a", "oil-prod"), backend("b", "oil-dev")],
    ["a host in capitals", ingress("a", "oil-prod", "x.org"), ingress("b", "oil-dev", "X.org")],
  ])("is taken by another spelling too: %s", async (_, first, second) => {
    expect(await decide("Cluster", second, {}, [first])).toBe(false);
    expect(await decide("Cluster", first, {}, [second])).toBe(false);
    expect(await decide("Tenant", first, {}, [second])).toBe(false);
  });

  it.each<[string, Manifest, Manifest]>([
    ["beside it", ingress("a", "oil-prod", "www.x.org"), ingress("b", "oil-dev", "shop.x.org")],
    ["the domain of a wildcard", ingress("a", "oil-prod", "*.x.org"), ingress("b", "oil-dev", "x.org")],
    ["below another wildcard", ingress("a", "oil-prod", "*.x.org"), ingress("b", "oil-dev", "www.y.org")],
    ["with a path in capitals", ingress("a", "oil-prod", "x.org", "/api"), ingress("b", "oil-dev", "x.org", "/API")],
    ["of no tenant", ingress("a", "administrators", "x.org"), ingress("b", "oil-dev", "x.org")],
  ])("is free: %s", async (_, first, second) => {
    expect(await decide("Cluster", second, {}, [first])).toBe(true);
  });
});

it("a scope that there is not, in Capsule's annotation, compares nothing", async () => {
  const tenant = tenantNamed("oil", {});
  tenant.metadata.annotations = { "ingress.capsule.clastix.io/hostname-collision-scope": "tenant" };
  const ingresses = [ingress("other", "oil-prod", "shop.example.com")];
  const object = ingress("new", "oil-prod", "shop.example.com");
  const decision = await ingressCollisionWebhook().review(creation(object), view({ tenants: [tenant], ingresses }));
  expect(decision).toEqual({ allowed: true });
});

describe("a host name that another tenant allows by name", () => {
  const hosts = (...allowed: string[]) => ({ ingressHostnames: { allowed } });
  const decide = async (object: LiveObject, other: LiveObject, oldObject?: LiveObject) =>
    tenantHostnamesWebhook().review(
      creation(object, { operation: oldObject ? "UPDATE" : "CREATE", ...(oldObject && { oldObject }) }),
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
