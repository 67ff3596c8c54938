import { describe, expect, it } from "vitest";
import type { Identity } from "../../src/http/identity";
import { attributesIn, NewNamespaces } from "../../src/proxy/new-namespace";

const alice: Identity = { username: "alice", groups: ["capsule.clastix.io"], extra: {} };

describe("what a request does in a namespace", () => {
  const config = { group: "", version: "v1", namespace: "acme", resource: "configmaps" };
  const apps = { group: "apps", version: "v1", namespace: "acme", resource: "deployments", name: "web" };
  it.each<[string, string, object]>([
    ["GET", "/api/v1/namespaces/acme/configmaps/a?timeout=3s", { ...config, verb: "get", name: "a" }],
    ["GET", "/api/v1/namespaces/acme/configmaps?limit=5", { ...config, verb: "list" }],
    ["GET", "/api/v1/namespaces/acme/configmaps?watch=true", { ...config, verb: "watch" }],
    ["POST", "/api/v1/namespaces/acme/configmaps", { ...config, verb: "create" }],
    ["DELETE", "/api/v1/namespaces/acme/configmaps", { ...config, verb: "deletecollection" }],
    ["PATCH", "/apis/apps/v1/namespaces/acme/deployments/web", { ...apps, verb: "patch" }],
    ["PUT", "/apis/apps/v1/namespaces/acme/deployments/web/scale", { ...apps, verb: "update", subresource: "scale" }],
    ["DELETE", "/api/v1/namespaces/acme", { ...config, verb: "delete", resource: "namespaces", name: "acme" }],
  ])("%s %s", (method, target, attributes) => {
    expect(attributesIn(method, target)).toEqual(attributes);
  });

  it.each([
    ["GET", "/api/v1/namespaces"],
    ["GET", "/api/v1/nodes/a"],
    ["GET", "/api/v1/namespaces/acme/../kube-system/secrets"],
    ["GET", "/api/v1/namespaces/%61cme/secrets"],
    ["OPTIONS", "/api/v1/namespaces/acme/secrets"],
  ])("is not known of %s %s", (method, target) => {
    expect(attributesIn(method, target)).toBeUndefined();
  });
});

describe("a request that was forbidden", () => {
  const attributes = { verb: "create", version: "v1", resource: "secrets", namespace: "oil-a" };
  type Attributes = { verb: string; resource: string };

  /** @param may what reviews answer @param namespaces those of the name */
  function proxy(may: (attributes: Attributes) => boolean, ...namespaces: object[]) {
    const reviews: string[] = [];
    const resources = [{ name: "secrets", kind: "Secret" }];
    const client = {
      json: async (method: string, path: string, request: { body?: unknown } = {}) => {
        if (path === "/api/v1") return { resources } as never;
        if (method === "GET") return { metadata: { resourceVersion: "7" }, items: namespaces } as never;
        const { spec } = request.body as { spec: { resourceAttributes: Attributes } };
        const { verb, resource } = spec.resourceAttributes;
        reviews.push(`${verb} ${resource}`);
        return { status: { allowed: may(spec.resourceAttributes) } } as never;
      },
    };
    const asked = new NewNamespaces({ client, owners: { ownedBy: () => ["oil"] }, label: "tenant" });
    const becomesAllowed = (changes: Partial<typeof attributes> = {}) =>
      asked.becomesAllowed(alice, { ...attributes, ...changes });
    return { reviews, becomesAllowed };
  }
  const made = (tenant: string, changes: object = {}) => ({
    metadata: { name: "oil-a", creationTimestamp: new Date().toISOString(), labels: { tenant }, ...changes },
  });

  it("waits until its user has the right", async () => {
    let asked = 0;
    const { becomesAllowed, reviews } = proxy(() => ++asked >= 3, made("oil"));
    expect(await becomesAllowed()).toBe(true);
    expect(reviews).toEqual([...Array(3).fill("create configmaps"), "create secrets"]);
  });

  it("asks for the first rights once, however many wait", async () => {
    let asked = 0;
    const { becomesAllowed, reviews } = proxy(() => ++asked >= 3, made("oil"));
    const all = await Promise.all(Array.from({ length: 50 }, () => becomesAllowed()));
    expect(all).not.toContain(false);
    expect(reviews.filter((review) => review === "create configmaps")).toHaveLength(3);
  });

  it("does not wait for what the rights of an owner do not cover", async () => {
    const { becomesAllowed, reviews } = proxy(({ resource }) => resource === "configmaps", made("oil"));
    expect(await becomesAllowed()).toBe(false);
    expect(reviews.filter((review) => review === "create configmaps")).toHaveLength(1);
  });

  it.each<[string, object]>([
    ["of another's tenant", made("gas")],
    ["of none", made("")],
    ["that is being deleted", made("oil", { deletionTimestamp: "2026-01-01T00:00:00Z" })],
    ["that is not new", made("oil", { creationTimestamp: "2026-01-01T00:00:00Z" })],
  ])("waits in no namespace %s, nor is anything reviewed", async (_, namespace) => {
    const { becomesAllowed, reviews } = proxy(() => true, namespace);
    expect(await becomesAllowed()).toBe(false);
    expect(reviews).toEqual([]);
  });

  it("is answered with 404 where there is no such namespace, and the user may create it", async () => {
    await expect(proxy(() => true).becomesAllowed()).rejects.toMatchObject({
      code: 404,
      status: { reason: "NotFound", message: 'namespaces "oil-a" not found' },
    });
    expect(await proxy(() => false).becomesAllowed()).toBe(false);
    await expect(proxy(() => true).becomesAllowed({ verb: "watch" })).rejects.toMatchObject({ code: 404 });
  });

  it("lists nothing there, as the API server does for users with rights", async () => {
    const none = { kind: "SecretList", apiVersion: "v1", metadata: { resourceVersion: "7" }, items: [] };
    expect(await proxy(() => true).becomesAllowed({ verb: "list" })).toEqual(none);
    expect(await proxy(() => false).becomesAllowed({ verb: "list" })).toBe(false);
    const unserved = proxy(() => true).becomesAllowed({ verb: "list", resource: "nothings" });
    await expect(unserved).rejects.toMatchObject({ code: 404 });
  });
});
