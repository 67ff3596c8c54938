import Type from "typebox";
import { describe, expect, it } from "vitest";
import type { ObjectMeta } from "../../../providers/kubernetes/client";
import { objectOf } from "../../../src/testing/index";
import { defineKind } from "../../../stacks/contract/index";
import { operatorRules } from "../../../stacks/contract/rbac";
import { readReferenced, referenceRecords, referencesOf } from "../../../stacks/contract/references";
import { runProgram } from "../../../stacks/contract/run-program";
import { liveObject } from "../../objects";
import { GADGET } from "../../operator/gadget";
import { lookupOf } from "../../providers/kubernetes/lookup-of";

const seen: unknown[] = [];
const notice = defineKind({
  ...GADGET,
  spec: Type.Object({ secretName: Type.Optional(Type.String()) }),
  owns: [
    { apiVersion: "test.kindstack.dev/v1", kind: "Gadget" },
    { apiVersion: "gateway.networking.k8s.io/v1", kind: "Gateway", plural: "gateways" },
  ],
  program: (_, { read }) => {
    seen.push(read<{ data: object }>("login")?.data, read("shared")?.metadata.name, read("tier"));
  },
  capabilities: {
    reads: {
      login: { apiVersion: "v1", kind: "Secret", name: ({ spec }) => spec.secretName },
      shared: { apiVersion: "v1", kind: "ConfigMap", name: () => "defaults", namespace: "platform" },
      tier: { apiVersion: "example.com/v1", kind: "Tier", scope: "Cluster", name: () => "gold" },
    },
  },
});
const given = { owner: { uid: "u", description: "d" }, owned: [], recorded: new Set<string>(), watched: [] };
const server = {
  find: async ({ kind, metadata }: { kind: string; metadata: ObjectMeta }) =>
    lookupOf(
      kind === "Tier"
        ? undefined
        : liveObject({ kind, metadata: { ...metadata, resourceVersion: "7" }, data: { of: metadata.namespace } }),
    ),
};

describe("references", () => {
  it("lead to the object's own namespace, to the one that the author fixes, or to none", async () => {
    const ids = (await referencesOf(notice, objectOf(notice, { secretName: "a" }, { namespace: "team" }))).map(
      ([, { metadata }]) => metadata,
    );
    expect(ids).toEqual([
      { name: "a", namespace: "team" },
      { name: "defaults", namespace: "platform" },
      { name: "gold" },
    ]);
  });

  it("give a program what they lead to, or nothing yet", async () => {
    const object = objectOf(notice, { secretName: "a" }, { namespace: "team" });
    const referenced = await readReferenced(server, notice, object);
    await runProgram(notice, object, { ...given, referenced });
    expect(seen).toEqual([{ of: "team" }, "defaults", undefined]);
    expect(await referenceRecords(notice, object, referenced)).toEqual([
      { id: "v1/Secret/team/a", version: "7" },
      { id: "v1/ConfigMap/platform/defaults", version: "7" },
      { id: "example.com/v1/Tier//gold" },
    ]);
  });

  it("are none where the object names nothing, or does not fit its schema", async () => {
    expect(await referencesOf(notice, objectOf(notice, {}))).toHaveLength(2);
    expect(await referencesOf(notice, { ...objectOf(notice, {}), spec: undefined } as never)).toEqual([]);
  });

  it("that the kind does not have cannot be read", () => {
    const program = {
      ...notice,
      program: (_: unknown, { read }: { read(name: string): unknown }) => void read("other"),
    };
    expect(() => runProgram(program as typeof notice, objectOf(notice, {}), given)).toThrow(
      'the program reads "other", which reads of Gadget lacks',
    );
  });

  it("are rights of the operator to read, by the plurals of the kinds or as the author says", () => {
    const rules = operatorRules([notice]);
    const verbsOn = (group: string, resource: string) =>
      rules
        .filter(({ apiGroups, resources }) => apiGroups[0] === group && resources.includes(resource))
        .flatMap(({ verbs }) => verbs);
    expect(verbsOn("", "secrets")).toEqual(["get", "list", "watch"]);
    expect(verbsOn("test.kindstack.dev", "gadgets")).toContain("create");
    expect(verbsOn("gateway.networking.k8s.io", "gateways")).toContain("create");
  });
});
