import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Identity } from "../../src/http/identity";
import { isWatch, ownNamespaces, passageOf, type ViewOptions } from "../../src/proxy/view";
import { TENANT_LABEL } from "../../stacks/kinds/capsule-tenant/labels";

const alice: Identity = { username: "alice", groups: ["capsule.clastix.io"], extra: {} };

function options(changes: { tenants?: string[]; mayList?: boolean; changed?: boolean; ready?: boolean } = {}) {
  const asked: unknown[] = [];
  const options: ViewOptions = {
    owners: {
      ready: changes.ready ?? true,
      ownedBy: () => changes.tenants ?? ["oil"],
      changedSince: () => changes.changed ?? false,
    },
    label: "capsule.clastix.io/tenant",
    client: {
      json: async (_method, _path, request) => {
        asked.push((request as { body: { spec: unknown } }).body.spec);
        return { status: { allowed: changes.mayList ?? false } } as never;
      },
    },
    userGroups: ["capsule.clastix.io"],
  };
  return { options, asked };
}

/** What becomes of a request of alice's. */
const passage = (target: string, changes: Parameters<typeof options>[0] = {}, method = "GET") =>
  passageOf(options(changes).options, alice, method, target);
const NOTHING = "capsule.clastix.io/tenant,!capsule.clastix.io/tenant";
const NAMESPACES = "/api/v1/namespaces";
const selected = (path: string) => new URL(path, "https://x").searchParams.get("labelSelector");

describe("the passage of a request", () => {
  it.each([
    ["POST", "/api/v1/namespaces"],
    ["DELETE", "/api/v1/namespaces"],
    ["HEAD", "/api/v1/namespaces"],
    ["GET", "/api/v1/namespaces/oil"],
    ["GET", "/api/v1/namespaces/"],
    ["GET", "//api/v1/namespaces"],
    ["GET", "/api/v1/./namespaces"],
    ["GET", "/api/v1/%6eamespaces"],
    ["GET", "/api/v1/watch/namespaces"],
    ["GET", "https://elsewhere/api/v1/namespaces"],
    ["GET", "/api/v1/namespaces#?labelSelector=a"],
    ["GET", "/api/v1/pods?labelSelector=a"],
  ])("is the user's own, and unchanged: %s %s", async (method, target) => {
    expect(await passage(target, {}, method)).toEqual({ view: "user", path: target });
  });

  it("is the user's own for those outside the user group", async () => {
    const bob = { ...alice, groups: ["system:authenticated"] };
    expect((await passageOf(options().options, bob, "GET", "/api/v1/namespaces")).view).toBe("user");
  });

  it("of a list of namespaces leads to one's own, with all other parameters as they were", async () => {
    const { path, ...rest } = await passage(
      `${NAMESPACES}?limit=5&continue=abc&labelSelector=env%3Ddev&labelSelector=second&resourceVersion=7`,
    );
    expect(rest).toMatchObject({ view: "own-namespaces", owned: ["oil"] });
    const { searchParams } = new URL(path, "https://x");
    expect([...searchParams].sort()).toEqual([
      ["continue", "abc"],
      ["labelSelector", "capsule.clastix.io/tenant in (oil),env=dev"],
      ["limit", "5"],
      ["resourceVersion", "7"],
    ]);
  });

  it.each(["watch=1", "watch=true", "watch=True", "watch", "watch="])("knows a watch by %s", (query) => {
    expect(isWatch(`/api/v1/namespaces?${query}`)).toBe(true);
  });

  it.each(["watch=0", "watch=false", "watch=FALSE", ""])("knows a list by %s", (query) => {
    expect(isWatch(`/api/v1/namespaces?${query}`)).toBe(false);
  });

  it("leads owners of nothing to nothing", async () => {
    const { options: none, asked } = options({ tenants: [] });
    const { path } = await passageOf(none, alice, "GET", NAMESPACES);
    expect(selected(path)).toBe(NOTHING);
    const resourceAttributes = { verb: "list", version: "v1", resource: "namespaces" };
    expect(asked).toEqual([{ user: "alice", groups: ["capsule.clastix.io"], extra: {}, resourceAttributes }]);
  });

  it("is the user's own for owners of nothing who may list all", async () => {
    expect((await passage(NAMESPACES, { tenants: [], mayList: true })).view).toBe("user");
  });

  it("is closed until the tenants are known", async () => {
    await expect(passage(NAMESPACES, { ready: false })).rejects.toMatchObject({ code: 503 });
  });

  it("is closed to a watch from before the tenants changed, but not to one that begins again", async () => {
    const watch = `${NAMESPACES}?watch=true`;
    const late = passage(`${watch}&resourceVersion=5`, { changed: true });
    await expect(late).rejects.toMatchObject({ code: 410, reason: "Expired" });
    for (const query of ["", "&resourceVersion=0", "&resourceVersion=5&sendInitialEvents=true"]) {
      expect((await passage(watch + query, { changed: true })).view).toBe("own-namespaces");
    }
  });
});

describe("the selector of one's own namespaces", () => {
  it("names the tenants", () => {
    expect(ownNamespaces(TENANT_LABEL, ["gas", "oil"], null)).toBe("capsule.clastix.io/tenant in (gas,oil)");
  });

  it("selects nothing for the owner of nothing", () => {
    expect(ownNamespaces(TENANT_LABEL, [], null)).toBe(NOTHING);
    expect(ownNamespaces(TENANT_LABEL, [], "a=b")).toBe(`${NOTHING},a=b`);
  });

  it("is narrowed by what the client selects", () => {
    const narrowed = ownNamespaces(TENANT_LABEL, ["oil"], "env in (dev,test),!old");
    expect(narrowed).toBe("capsule.clastix.io/tenant in (oil),env in (dev,test),!old");
    expect(ownNamespaces(TENANT_LABEL, ["oil"], " ")).toBe("capsule.clastix.io/tenant in (oil)");
  });

  it("leaves out tenants whose name no label can hold", () => {
    expect(ownNamespaces(TENANT_LABEL, ["oil", "x".repeat(64)], null)).toBe("capsule.clastix.io/tenant in (oil)");
    expect(ownNamespaces(TENANT_LABEL, ["x".repeat(64)], null)).toBe(NOTHING);
  });

  it("has the tenants' requirement whole and in front, whatever the client sends", () => {
    fc.assert(
      fc.property(fc.string(), (requested) => {
        const selector = ownNamespaces(TENANT_LABEL, ["oil"], requested);
        const [own, rest] = [selector.slice(0, 34), selector.slice(34)];
        return own === "capsule.clastix.io/tenant in (oil)" && (rest === "" || rest === `,${requested}`);
      }),
    );
  });
});
