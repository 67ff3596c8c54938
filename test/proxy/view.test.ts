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
    expect(await passageOf(options().options, alice, method, target)).toEqual({ view: "user", path: target });
  });

  it("is the user's own for those outside the user group", async () => {
    const bob = { ...alice, groups: ["system:authenticated"] };
    expect((await passageOf(options().options, bob, "GET", "/api/v1/namespaces")).view).toBe("user");
  });

  it("of a list of namespaces leads to one's own, with all other parameters as they were", async () => {
    const passage = await passageOf(
      options().options,
      alice,
      "GET",
      "/api/v1/namespaces?limit=5&continue=abc&labelSelector=env%3Ddev&labelSelector=second&resourceVersion=7",
    );
    expect(passage).toMatchObject({ view: "own-namespaces", owned: ["oil"] });
    const { searchParams } = new URL(passage.path, "https://x");
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
    const passage = await passageOf(none, alice, "GET", "/api/v1/namespaces");
    expect(selected(passage.path)).toBe("capsule.clastix.io/tenant,!capsule.clastix.io/tenant");
    expect(asked).toEqual([
      {
        user: "alice",
        groups: ["capsule.clastix.io"],
        extra: {},
        resourceAttributes: { verb: "list", version: "v1", resource: "namespaces" },
      },
    ]);
  });

  it("is the user's own for owners of nothing who may list all", async () => {
    const { options: none } = options({ tenants: [], mayList: true });
    expect((await passageOf(none, alice, "GET", "/api/v1/namespaces")).view).toBe("user");
  });

  it("is closed until the tenants are known", async () => {
    await expect(passageOf(options({ ready: false }).options, alice, "GET", "/api/v1/namespaces")).rejects.toThrow(
      expect.objectContaining({ code: 503 }),
    );
  });

  it("is closed to a watch from before the tenants changed, but not to one that begins again", async () => {
    const { options: changed } = options({ changed: true });
    const watch = "/api/v1/namespaces?watch=true";
    await expect(passageOf(changed, alice, "GET", `${watch}&resourceVersion=5`)).rejects.toThrow(
      expect.objectContaining({ code: 410, reason: "Expired" }),
    );
    for (const query of ["", "&resourceVersion=0", "&resourceVersion=5&sendInitialEvents=true"]) {
      expect((await passageOf(changed, alice, "GET", watch + query)).view).toBe("own-namespaces");
    }
  });
});

describe("the selector of one's own namespaces", () => {
  it("names the tenants", () => {
    expect(ownNamespaces(TENANT_LABEL, ["gas", "oil"], null)).toBe("capsule.clastix.io/tenant in (gas,oil)");
  });

  it("selects nothing for the owner of nothing", () => {
    expect(ownNamespaces(TENANT_LABEL, [], null)).toBe("capsule.clastix.io/tenant,!capsule.clastix.io/tenant");
    expect(ownNamespaces(TENANT_LABEL, [], "a=b")).toBe("capsule.clastix.io/tenant,!capsule.clastix.io/tenant,a=b");
  });

  it("is narrowed by what the client selects", () => {
    expect(ownNamespaces(TENANT_LABEL, ["oil"], "env in (dev,test),!old")).toBe(
      "capsule.clastix.io/tenant in (oil),env in (dev,test),!old",
    );
    expect(ownNamespaces(TENANT_LABEL, ["oil"], " ")).toBe("capsule.clastix.io/tenant in (oil)");
  });

  it("leaves out tenants whose name no label can hold", () => {
    expect(ownNamespaces(TENANT_LABEL, ["oil", "x".repeat(64)], null)).toBe("capsule.clastix.io/tenant in (oil)");
    expect(ownNamespaces(TENANT_LABEL, ["x".repeat(64)], null)).toBe(
      "capsule.clastix.io/tenant,!capsule.clastix.io/tenant",
    );
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
