import type { Output } from "@pulumi/pulumi/output";
import { CustomResource } from "@pulumi/pulumi/resource";
import { describe, expect, it } from "vitest";
import { KubernetesObject } from "../../providers/kubernetes/index";
import type { DynamicProvider } from "../../providers/provider";
import { objectOf, planBetween, registeredBy } from "../../src/testing/index";
import type { Kind } from "../../stacks/contract/kind";
import { memcached } from "../../stacks/kinds/memcached/kind";
import { postgresWriter } from "../../stacks/kinds/postgres-writer/kind";
import { tenant } from "../../stacks/kinds/tenant/kind";
import type { TenantSpec } from "../../stacks/kinds/tenant/schema";
import { THING_STUB, Thing, Things } from "../automation/things";

type Written = Kind<TenantSpec, object>;

it("objectOf fills in the schema's defaults and refuses what the schema refuses", () => {
  const object = objectOf(memcached, { size: 2 }, { name: "cache" });
  expect(object).toMatchObject({
    apiVersion: "cache.example.com/v1alpha1",
    metadata: { name: "cache", namespace: "default" },
    spec: { size: 2, containerPort: 11211 },
  });
  expect(objectOf(tenant, { adminEmail: "a@example.com", namespaces: [] }).metadata.namespace).toBeUndefined();
  expect(() => objectOf(memcached, { size: -1 })).toThrow("spec.size: -1 must be");
});

it("registeredBy runs a program with an object that owns nothing yet", async () => {
  const acme = objectOf(tenant, { adminEmail: "a@example.com", namespaces: ["acme"], userGroups: ["users"] });
  expect(await registeredBy(tenant, acme)).toMatchObject([
    { name: "namespace/acme", inputs: { owner: { uid: expect.any(String) } } },
    { name: "rolebinding/acme/edit", inputs: { manifest: { roleRef: { name: "edit" } } } },
  ]);
});

describe("planBetween", () => {
  const acme = (namespaces: string[], adminEmail = "a@example.com") => objectOf(tenant, { adminEmail, namespaces });

  it("tells creations, updates with what changes, and deletions", async () => {
    expect(await planBetween(tenant, acme(["a", "b"]), acme(["b", "c"], "b@example.com"))).toEqual([
      { operation: "update", name: "namespace/b", inputs: ["manifest.metadata.annotations.adminEmail"] },
      { operation: "create", name: "namespace/c", inputs: [] },
      { operation: "delete", name: "namespace/a", inputs: [] },
    ]);
    expect(await planBetween(tenant, acme(["a"]), acme(["a"]))).toEqual([]);
    expect(await planBetween(tenant, undefined, acme(["a"]))).toMatchObject([{ operation: "create" }]);
    expect(await planBetween(tenant, acme(["a"]), undefined)).toMatchObject([{ operation: "delete" }]);
  });

  it("asks the resource's provider whether it is replaced", async () => {
    const row = (table: string, age: number) =>
      objectOf(postgresWriter, { table, name: "alex", age, country: "canada" });
    expect(await planBetween(postgresWriter, row("a", 1), row("a", 2))).toEqual([
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

  it("asks the providers of the kind's own", async () => {
    const things = new Things();
    const provider = Object.fromEntries(
      ["check", "diff", "create", "read", "update", "delete", "release"].map((name) => [
        name,
        things[name as "diff"].bind(things),
      ]),
    ) as unknown as DynamicProvider;
    const kind: Written = {
      ...tenant,
      program: ({ spec }) => void new Thing("thing", { key: spec.adminEmail, value: "1" }),
      capabilities: { providers: [{ stub: THING_STUB, provider }] },
    };
    expect(await planBetween(kind, acme([], "a@a.b"), acme([], "b@a.b"))).toEqual([
      { operation: "replace", name: "thing", inputs: ["key"] },
    ]);
  });
});

const acme = (namespaces: string[]) => objectOf(tenant, { adminEmail: "a@example.com", namespaces });

describe("a kind's program in a test", () => {
  it("may only declare what the kind owns", async () => {
    const kind: Written = { ...tenant, owns: [] };
    await expect(registeredBy(kind, objectOf(tenant, { adminEmail: "a@a.b", namespaces: ["acme"] }))).rejects.toThrow(
      "to owns of Tenant",
    );
  });

  it("may only do what a plain program can, unless the kind has the SDK's runtime", async () => {
    const program: Written["program"] = () => {
      const options = { ignoreChanges: ["value"], hooks: {} } as object;
      new Thing("thing", { key: "a", value: "1" }, options);
    };
    await expect(registeredBy({ ...tenant, program }, acme([]))).rejects.toThrow("the option hooks");
  });

  it("is given outputs, and what its references lead to", async () => {
    class Password extends CustomResource {
      declare readonly result: Output<string>;
      constructor(name: string) {
        super("random:index/randomPassword:RandomPassword", name, { length: 3, result: undefined });
      }
    }
    const reads = { login: { apiVersion: "v1", kind: "Secret", name: () => "login" } };
    const kind: Written = {
      ...tenant,
      owns: [{ apiVersion: "v1", kind: "Secret" }],
      capabilities: { sdkRuntime: true, reads },
      program: (_, { owner, read }) => {
        const { result: password } = new Password("password");
        const data = { password, user: read<{ user: string }>("login")?.user };
        const manifest = { apiVersion: "v1", kind: "Secret", metadata: { name: "a", namespace: "b" }, data };
        new KubernetesObject("secret", { owner, manifest });
      },
    };
    const registered = await registeredBy(kind, acme([]), {
      referenced: { login: { user: "alex" } },
      outputs: ({ name }) => (name === "password" ? { result: "abc" } : {}),
    });
    expect(registered).toMatchObject([
      { name: "password", inputs: { length: 3 } },
      { name: "secret", inputs: { manifest: { data: { password: "abc", user: "alex" } } } },
    ]);
  });
});
