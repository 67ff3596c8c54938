import { describe, expect, it } from "vitest";
import { KubernetesObject } from "../../providers/kubernetes/index";
import { objectOf, planBetween, registeredBy } from "../../src/testing/index";
import { memcached } from "../../stacks/kinds/memcached/kind";
import { postgresWriter } from "../../stacks/kinds/postgres-writer/kind";
import { tenant } from "../../stacks/kinds/tenant/kind";
import type { TenantSpec } from "../../stacks/kinds/tenant/schema";

describe("objectOf", () => {
  it("fills in the schema's defaults and refuses what the schema refuses", () => {
    const object = objectOf(memcached, { size: 2 }, { name: "cache" });
    expect(object).toMatchObject({
      apiVersion: "cache.example.com/v1alpha1",
      metadata: { name: "cache", namespace: "default" },
      spec: { size: 2, containerPort: 11211 },
    });
    expect(objectOf(tenant, { adminEmail: "a@example.com", namespaces: [] }).metadata.namespace).toBeUndefined();
    expect(() => objectOf(memcached, { size: -1 })).toThrow("spec.size: -1 must be");
  });
});

describe("registeredBy", () => {
  it("runs a program with an object that owns nothing yet", async () => {
    const acme = objectOf(tenant, { adminEmail: "a@example.com", namespaces: ["acme"], userGroups: ["users"] });
    expect(await registeredBy(tenant.program, acme)).toMatchObject([
      { name: "namespace/acme", owner: { uid: expect.any(String) } },
      { name: "rolebinding/acme/edit", manifest: { roleRef: { name: "edit" } } },
    ]);
  });
});

describe("planBetween", () => {
  const acme = (namespaces: string[], adminEmail = "a@example.com") => objectOf(tenant, { adminEmail, namespaces });

  it("tells creations, updates with what changes, and deletions", async () => {
    expect(await planBetween(tenant.program, acme(["a", "b"]), acme(["b", "c"], "b@example.com"))).toEqual([
      { operation: "update", name: "namespace/b", inputs: ["manifest.metadata.annotations.adminEmail"] },
      { operation: "create", name: "namespace/c", inputs: [] },
      { operation: "delete", name: "namespace/a", inputs: [] },
    ]);
    expect(await planBetween(tenant.program, acme(["a"]), acme(["a"]))).toEqual([]);
    expect(await planBetween(tenant.program, undefined, acme(["a"]))).toMatchObject([{ operation: "create" }]);
    expect(await planBetween(tenant.program, acme(["a"]), undefined)).toMatchObject([{ operation: "delete" }]);
  });

  it("asks the resource's provider whether it is replaced", async () => {
    const row = (table: string, age: number) =>
      objectOf(postgresWriter, { table, name: "alex", age, country: "canada" });
    expect(await planBetween(postgresWriter.program, row("a", 1), row("a", 2))).toEqual([
      { operation: "update", name: expect.any(String), inputs: ["values.age"] },
    ]);
    const binding = (role: string) => {
      new KubernetesObject("binding", {
        owner: { uid: "u", description: "d" },
        replaceOnChanges: ["roleRef"],
        manifest: {
          apiVersion: "rbac.authorization.k8s.io/v1",
          kind: "RoleBinding",
          metadata: { name: "a", namespace: "b" },
          roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: role },
        },
      });
    };
    const either = ({ spec }: { spec: TenantSpec }) => binding(spec.adminEmail);
    expect(await planBetween(either, acme([], "admin@a.b"), acme([], "edit@a.b"))).toEqual([
      { operation: "replace", name: "binding", inputs: ["manifest.roleRef.name"] },
    ]);
  });
});
