import { describe, expect, it } from "vitest";
import type { LiveObject, Manifest } from "../../../providers/kubernetes/client";
import { provider } from "../../../providers/kubernetes/object";
import { refuseOwnersElsewhere } from "../../../providers/kubernetes/owner-namespace";
import { terminal } from "../failures";
import { lookupOf } from "./lookup-of";

const notice = { uid: "uid-notice", description: "Notice.example.com/default/one" };
const cluster = { uid: "uid-tenant", description: "Tenant.example.com/one" };
const reference = (uid: string, kind = "Notice") => ({ apiVersion: "example.com/v1", kind, name: "one", uid });
const configMap = (namespace: string | undefined, ...uids: string[]): Manifest => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "a", ...(namespace && { namespace }), ownerReferences: uids.map((uid) => reference(uid)) },
});

describe("a reference to the owner", () => {
  const check = async (owner: typeof notice, manifest: Manifest) => provider.check({}, { owner, manifest });

  it("is refused in another namespace, and on what has none", async () => {
    for (const namespace of ["shared", undefined]) {
      const refusal = terminal(
        "InvalidProgram",
        "owner reference to Notice.example.com/default/one, which is not there",
      );
      await expect(check(notice, configMap(namespace, notice.uid))).rejects.toEqual(refusal);
    }
  });

  it.each([
    ["in the owner's namespace", notice, configMap("default", notice.uid)],
    ["to an owner without a namespace", cluster, configMap("default", cluster.uid)],
    ["if there is none", notice, configMap("shared")],
  ])("is accepted %s", async (_, owner, manifest) => {
    expect(await check(owner, manifest)).toMatchObject({ failures: [] });
  });
});

describe("a reference to another owner", () => {
  const server = (found: string | undefined) => ({
    resourceType: async (apiVersion: string, kind: string) => {
      return { apiVersion, kind, plural: kind, namespaced: kind === "Notice" };
    },
    get: async () => lookupOf(found === undefined ? undefined : ({ metadata: { uid: found } } as LiveObject)),
  });

  it.each([
    ["no object of the name", "shared", undefined],
    ["another object of the name", "shared", "uid-another"],
    ["no namespace", undefined, "uid-other"],
  ])("is refused where there is %s", async (_, namespace, found) => {
    const checking = refuseOwnersElsewhere(server(found), configMap(namespace, "uid-other"), notice);
    await expect(checking).rejects.toMatchObject({ reason: "InvalidProgram" });
  });

  it("is accepted in the namespace of that owner", async () => {
    const checking = refuseOwnersElsewhere(server("uid-other"), configMap("default", "uid-other"), notice);
    await expect(checking).resolves.toBeUndefined();
  });
});
