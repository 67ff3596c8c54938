import { describe, expect, it } from "vitest";
import { TerminalError } from "../../../../providers/errors";
import type { LiveObject } from "../../../../providers/kubernetes/client";
import { parseObject } from "../../../../stacks/contract/kind";
import { violatedRules } from "../../../../stacks/contract/rules";
import { tenant } from "../../../../stacks/kinds/tenant/kind";
import { acme, marksOf, namespace, tenantObject } from "../../../objects";

const created = (name: string) => namespace(name, marksOf(acme, { created: true }));
const adopted = (name: string) => namespace(name, marksOf(acme, { created: false }));

describe("Tenant", () => {
  it("claims its namespaces, so that no two tenants have the same", () => {
    expect(tenant.capabilities.claims?.of(tenantObject({ namespaces: ["acme-dev", "acme-prod"] }), [])).toEqual([
      "v1/Namespace//acme-dev",
      "v1/Namespace//acme-prod",
    ]);
  });

  it.each<Partial<ReturnType<typeof tenantObject>["spec"]>>([
    { namespaces: [] },
    { namespaces: ["a", "0", "a-b", "x".repeat(63)] },
    { adminGroups: ["admins", "oidc:team a"], userGroups: [] },
  ])("accepts %o", (spec) => {
    expect(parseObject(tenant, tenantObject(spec)).spec).toMatchObject(spec);
  });

  it.each<[object, string]>([
    [{ namespaces: ["ok", "Bad_Name"] }, 'spec.namespaces.1: "Bad_Name" must match pattern'],
    [{ namespaces: ["-a"] }, 'spec.namespaces.0: "-a" must match pattern'],
    [{ namespaces: ["x".repeat(64)] }, "must not have more than 63 characters"],
    [{ namespaces: "acme" }, 'spec.namespaces: "acme" must be array'],
    [{ namespaces: ["kube-system"] }, 'spec.namespaces.0: "kube-system" is protected'],
    [{ namespaces: ["ok", "default"] }, 'spec.namespaces.1: "default" is protected'],
    [{ namespaces: ["kindstack-system"] }, "allowed: all except kube-*, default, kindstack-system"],
    [{ adminEmail: "" }, 'spec.adminEmail: "" must match pattern'],
    [{ adminEmail: "a\u009b2J@b" }, "must match pattern"],
    [{ adminEmail: "a@b\u001b[2J" }, "must match pattern"],
    [{ adminEmail: "nobody" }, 'spec.adminEmail: "nobody" must match pattern'],
    [{ adminGroups: [""] }, 'spec.adminGroups.0: "" must not have fewer than 1 characters'],
  ])("refuses %o naming the field", (spec, message) => {
    const object = { ...tenantObject(), spec: { ...tenantObject().spec, ...spec } } as LiveObject;
    expect(() => parseObject(tenant, object)).toThrow(TerminalError);
    expect(() => parseObject(tenant, object)).toThrow(message);
  });

  it("refuses a namespace that a file names twice, as the API server does", async () => {
    expect(await violatedRules(tenant, tenantObject({ namespaces: ["a", "b", "a"] }))).toEqual([
      'spec.namespaces.2: "a" is a duplicate value',
    ]);
  });
});

describe("the status of a Tenant", () => {
  it("counts the namespaces that exist and names those that were adopted, in order", () => {
    const owned = [created("acme-dev"), adopted("zoo"), adopted("acme-prod")];
    expect(tenant.report(tenantObject(), owned)).toEqual({
      namespaceCount: 3,
      adminEmail: "admin@acme.example",
      adoptedNamespaces: ["acme-prod", "zoo"],
    });
  });

  it("does not count what is on its way out, nor what is no namespace", () => {
    const terminating = created("acme-old");
    terminating.metadata.deletionTimestamp = "2026-01-01T00:00:00Z";
    const binding = { ...created("acme-dev-admin-rb"), kind: "RoleBinding" };
    expect(tenant.report(tenantObject(), [terminating, binding])).toMatchObject({
      namespaceCount: 0,
      adoptedNamespaces: [],
    });
  });
});
