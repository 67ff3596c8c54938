import Type from "typebox";
import { describe, expect, it } from "vitest";
import type { LiveObject } from "../../providers/kubernetes/client";
import type { Lookup } from "../../providers/kubernetes/types";
import { doubtsOn, liveObjects, refusalOf } from "../../src/fleet/live";
import { type AnyKind, defineKind } from "../../stacks/contract/kind";
import { servedVersion } from "../../stacks/contract/served-version";

const names = { group: "example.com", kind: "Note", plural: "notes", singular: "note", scope: "Namespaced" } as const;

/** v2 has another name for what v1 calls text, and is stored. @param shout changes what a conversion makes of it */
const kindOf = (shout = "", servesV1 = true) =>
  defineKind({
    ...{ ...names, version: "v2", spec: Type.Object({ body: Type.String() }), status: Type.Object({}) },
    ...{ description: "", columns: [], owns: [], directory: __dirname, program: () => {}, report: () => ({}) },
    capabilities: servesV1
      ? {
          versions: [
            servedVersion({
              version: "v1",
              spec: Type.Object({ text: Type.String() }),
              toStored: ({ spec: { text }, annotations }) => ({ spec: { body: text + shout }, annotations }),
              fromStored: ({ spec, annotations }) => ({ spec: { text: (spec as { body: string }).body }, annotations }),
            }),
          ],
        }
      : {},
  }) as unknown as AnyKind;

const note = (version: string, spec: object) =>
  ({
    ...{ apiVersion: `example.com/${version}`, kind: "Note", spec },
    metadata: { name: "one", namespace: "team-a", uid: "uid", resourceVersion: "1" },
  }) as LiveObject;

/** A cluster whose definition serves both versions. */
function clusterOf(written: string, storedVersions: string[], fails: string[] = []) {
  const asked: string[] = [];
  const definition = {
    spec: { versions: ["v1", "v2"].map((name) => ({ name, served: true, storage: name === written })) },
    status: { storedVersions },
  };
  return {
    asked,
    look: async () => ({ outcome: "found", object: definition }) as unknown as Lookup,
    async list({ version }: AnyKind) {
      asked.push(version);
      if (fails.includes(version)) throw new Error("the conversion does not answer");
      return [note(version, version === "v1" ? { text: "a" } : { body: "a" })];
    },
  };
}

describe("the live objects of a kind that is yet to be rolled out", () => {
  it("are read as they are stored, and not as the definition of today converts them", async () => {
    const cluster = clusterOf("v1", ["v1"]);
    const { objects, alternatives } = await liveObjects(cluster, kindOf(), undefined);
    expect([objects[0]?.spec, alternatives, cluster.asked]).toEqual([{ text: "a" }, [], ["v1"]]);
  });

  it("are read in each version in which they may be stored, or not at all", async () => {
    const { objects, alternatives } = await liveObjects(clusterOf("v2", ["v1", "v2"]), kindOf(), undefined);
    expect([objects, alternatives].map(([one]) => one?.apiVersion)).toEqual(["example.com/v2", "example.com/v1"]);
    const failing = await liveObjects(clusterOf("v2", ["v1", "v2"], ["v1"]), kindOf(), undefined);
    expect([failing.objects, failing.unchecked]).toEqual([[], [expect.stringContaining("does not answer")]]);
  });

  it("are in doubt where the new conversion makes something else of each version", async () => {
    const live = note("v2", { body: "a" });
    const alternatives = [note("v1", { text: "a" })];
    expect(await doubtsOn(kindOf(), alternatives)(live)).toBeUndefined();
    expect(await doubtsOn(kindOf("!"), alternatives)(live)).toMatch(
      /^it may be stored in v2 or v1, and is not converted/,
    );
    expect(await doubtsOn(kindOf("!"), [])(live)).toBeUndefined();
  });

  it("keep a version in the definition as long as they may be stored in it", () => {
    expect(refusalOf(kindOf(), ["v1", "v2"])).toBeUndefined();
    expect(refusalOf(kindOf("", false), ["v1", "v2"])).toMatch(/refuses the definition: objects may be stored in v1,/);
    expect(refusalOf(kindOf("", false), ["v2"])).toBeUndefined();
  });
});
