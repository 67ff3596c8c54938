import { describe, expect, it, vi } from "vitest";
import { requireRights, rightsForDiff, rightsForPreview, rightsForStack } from "../../src/preview/api";
import type { AnyKind } from "../../stacks/contract/kind";
import { kinds } from "../../stacks/kinds/index";
import { postgresWriter } from "../../stacks/kinds/postgres-writer/kind";
import { tenant } from "../../stacks/kinds/tenant/kind";

const writer: AnyKind = postgresWriter;
const candidate = (kind: AnyKind, name: string, namespace?: string) => ({
  kind,
  manifest: { apiVersion: "v", kind: kind.kind, metadata: { name, ...(namespace && { namespace }) } },
  removed: false,
});
const preview = (verb: string, namespace?: string) => {
  return { verb, group: "kindstack.dev", resource: "previews", ...(namespace && { namespace }) };
};
const writers = { group: "demo.yash.com", resource: "postgreswriters" };

describe("what a caller needs", () => {
  it("for a preview, is to create previews where the objects are, once for each place, and to get each object", async () => {
    const candidates = [candidate(tenant, "acme"), candidate(writer, "a", "x"), candidate(writer, "b", "x")];

    expect(await rightsForPreview({ candidates }, kinds)).toEqual([
      preview("create"),
      { verb: "get", group: "multitenancy.codereliant.io", resource: "tenants", name: "acme" },
      preview("create", "x"),
      { verb: "get", ...writers, namespace: "x", name: "a" },
      { verb: "get", ...writers, namespace: "x", name: "b" },
    ]);
  });

  it("is also to get what objects refer to, by the plural of the kind that it is of", async () => {
    const person = { ...tenant, group: "example.com", kind: "Person", plural: "people" } as AnyKind;
    const reads = { person: { apiVersion: "example.com/v1", kind: "Person", name: () => "ada" } };
    const kind = { ...writer, capabilities: { reads } } as AnyKind;
    const selection = { candidates: [candidate(kind, "a", "x")] };

    const right = { verb: "get", group: "example.com", resource: "people", namespace: "x", name: "ada" };
    expect(await rightsForPreview(selection, [kind, person])).toContainEqual(right);
  });

  it("for a comparison of many objects, is to list all of them", async () => {
    expect(rightsForDiff([writer], {})).toEqual([preview("create"), { verb: "list", ...writers }]);
    expect(rightsForDiff(kinds, {})).toHaveLength(1 + kinds.length);
  });

  it("for a stack, is to see stacks where the object is, and to get the object", async () => {
    const object = { verb: "get", ...writers, namespace: "x", name: "a" };
    const states = { ...preview("get", "x"), resource: "states" };
    expect(rightsForStack("states", writer, "x", "a")).toEqual([states, object]);
    expect(rightsForStack("previews", writer, "x", "a")).toEqual([preview("get", "x"), object]);
  });

  it("is asked of the API server for the user with all groups, and the first refusal names what is missing", async () => {
    type Asked = { body: { spec: { resourceAttributes: { verb: string } } } };
    const json = vi.fn(async (_method: string, _path: string, { body: { spec } }: Asked) => {
      return { status: { allowed: spec.resourceAttributes.verb === "create" } };
    });
    const rights = await rightsForPreview({ candidates: [candidate(writer, "a", "x")] }, kinds);
    const caller = { groups: ["g"], extra: { e: ["1"] } };

    const required = requireRights({ json } as never, { username: "ci", ...caller }, rights);
    const message = "ci may not get postgreswriters.demo.yash.com a in the namespace x";
    await expect(required).rejects.toMatchObject({ code: 403, message });
    const resourceAttributes = { version: "*", ...preview("create", "x") };
    const asked = json.mock.calls.map(([, , { body }]) => body.spec);
    expect(asked).toContainEqual({ user: "ci", ...caller, resourceAttributes });
  });
});
