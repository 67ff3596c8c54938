import { describe, expect, it } from "vitest";
import type { LiveObject, Manifest } from "../../providers/kubernetes/client";
import { OBJECT_STUB } from "../../providers/kubernetes/object";
import type { Lookup } from "../../providers/kubernetes/types";
import { withObserved } from "../../providers/observation";
import { RETAINED } from "../../providers/resource-options";
import type { PlannedChange } from "../../src/automation/planned-changes";
import { idOf, ownersOf, type PlanOperation, plannedResources } from "../../src/plan/effects";
import { memcached } from "../../stacks/kinds/memcached/kind";
import { acme, globex, marksOf } from "../objects";

const manifestOf = (name: string): Manifest => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, namespace: "default" },
});
const MANIFEST = manifestOf("web");
const inputsOf = (manifest: Manifest) => ({ __provider: OBJECT_STUB, manifest, owner: acme });
const outputsOf = (changes: object = {}) => ({
  ...inputsOf(MANIFEST),
  ...{ uid: "uid-web", created: true, fields: "digest" },
  ...changes,
});

function change(operation: PlannedChange["operation"], outputs: object = outputsOf()): PlannedChange {
  const old = operation === "create" ? undefined : { inputs: inputsOf(MANIFEST), outputs: { ...outputs } };
  return {
    ...{ urn: "u", type: "pulumi-nodejs:dynamic/kubernetes:ConfigMap", name: "config", operation },
    ...(operation !== "delete" && { inputs: inputsOf(MANIFEST) }),
    ...(old && { old }),
  };
}

const found = (metadata: object = marksOf(acme, { created: true })): Lookup => ({
  outcome: "found",
  object: { ...MANIFEST, metadata: { ...MANIFEST.metadata, uid: "uid-web", ...metadata } } as LiveObject,
});
const ABSENT: Lookup = { outcome: "absent" };
const UNKNOWN: Lookup = { outcome: "unknown", error: new Error("forbidden") };

async function plan(changes: PlannedChange[], lookup: Lookup, operation: PlanOperation = "update") {
  return plannedResources(changes, async () => lookup, { kind: memcached, uid: acme.uid, operation });
}
const words = async (...args: Parameters<typeof plan>) => (await plan(...args)).map(({ shown }) => shown.operation);

describe("what a creation does to what is no Kubernetes object", () => {
  const row: PlannedChange = {
    ...change("create"),
    inputs: { __provider: "gone", table: "students", values: { id: "a", age: 23 } },
  };
  const wordsWith = async (live: unknown, of = row) => {
    const observed = new Map([["u", withObserved(undefined, "u", "Create", live, row.inputs)]]);
    const changing = { kind: memcached, uid: acme.uid, operation: "update" } as const;
    const [planned] = await plannedResources([of], async () => found(), changing, observed);
    return [planned?.shown.operation, planned?.shown.fields.map(({ path }) => path)];
  };

  it("tells what exists already from what does not", async () => {
    const fields = ["table", "values.id", "values.age"];
    expect(await wordsWith(null)).toEqual(["create", fields]);
    const existing = { row: { id: "a", age: 22 }, of: null };
    expect(await wordsWith(existing)).toEqual(["adopt", fields]);
    // The steps of a replacement are observed together, and an object tells by itself.
    const [replaced] = await wordsWith(existing, { ...row, operation: "replace", old: { inputs: {}, outputs: {} } });
    expect(replaced).toBe("replace");
    expect((await wordsWith(existing, change("create")))[0]).toBe("update");
  });
});

it("the resource of a kind's own provider that has a manifest is looked for by that", async () => {
  const asked: (Manifest | undefined)[] = [];
  const look = async (manifest: Manifest) => {
    asked.push(manifest);
    return ABSENT;
  };
  const own = { ...change("create"), inputs: { __provider: "own", manifest: MANIFEST } };
  const changing = { kind: memcached, uid: acme.uid, operation: "update" } as const;
  const [planned] = await plannedResources([own], look, changing);
  expect(asked).toEqual([MANIFEST]);
  expect(planned?.shown.operation).toBe("create");
});

describe("what a deletion does to a Kubernetes object", () => {
  const theirs = found(marksOf(globex, { created: true }));
  const dependent = { ...acme, apiVersion: "a/v1", kind: "A", name: "acme", controller: true };
  const referring = { ...MANIFEST, metadata: { ...MANIFEST.metadata, ownerReferences: [dependent] } };
  const existing = outputsOf({ existing: true, created: false, manifest: referring });
  it.each<[string, object, Lookup, PlanOperation, string]>([
    ["deletes what it has made", outputsOf(), found(), "update", "delete"],
    ["finds that deleted already", outputsOf(), ABSENT, "update", "delete"],
    ["is not known where that cannot be looked up", outputsOf(), UNKNOWN, "update", "unchecked"],
    ["releases what was adopted", outputsOf({ created: false }), found(), "delete", "release"],
    ["releases what another owner has by now", outputsOf(), theirs, "delete", "release"],
    [
      "releases what has lost the mark of its creation",
      outputsOf(),
      found(marksOf(acme, { created: false })),
      "delete",
      "release",
    ],
    [
      "releases one of that name that a user has made since, as a copy",
      outputsOf(),
      found({ ...marksOf(acme, { created: true }), labels: {}, uid: "other" }),
      "delete",
      "release",
    ],
    [
      "deletes what has lost its owner's label",
      outputsOf(),
      found({ ...marksOf(acme, { created: true }), labels: {} }),
      "delete",
      "delete",
    ],
    ["releases what is retained", outputsOf({ [RETAINED]: true }), found(), "delete", "release"],
    ["deletes what others made with its object", existing, found(), "delete", "delete"],
    ["releases that where the object stays", existing, found(), "update", "release"],
    [
      "releases what ends with another object",
      outputsOf({ existing: true, deletedWith: { ...dependent, uid: globex.uid } }),
      found(),
      "delete",
      "release",
    ],
    ["releases what others made and keep", outputsOf({ existing: true }), found(), "delete", "release"],
    ["leaves all of it where the stack is released", outputsOf(), found(), "release", "orphan"],
    ["deletes what is no Kubernetes object", { id: "row" }, ABSENT, "delete", "delete"],
  ])("%s", async (_, outputs, lookup, operation, expected) => {
    expect(await words([change("delete", outputs)], lookup, operation)).toEqual([expected]);
  });
});

describe("what an apply does to a Kubernetes object", () => {
  const unlabelled = { labels: {} };
  const sealed = { ...inputsOf(MANIFEST), manifest: "[secret]" };
  it.each<[string, PlannedChange, Lookup, string]>([
    ["creates what is not there", change("create"), ABSENT, "create"],
    ["is not known to create what cannot be looked up", change("create"), UNKNOWN, "unchecked"],
    ["adopts what is there and unmanaged", change("create"), found(unlabelled), "adopt"],
    ["updates what is its owner's already", change("create"), found(), "update"],
    ["creates again what is on its way out", change("create"), found({ deletionTimestamp: "now" }), "create"],
    ["updates what is there", change("update"), found(), "update"],
    ["updates what has lost its label alone", change("update"), found(unlabelled), "update"],
    ["adopts another one of that name", change("update"), found({ uid: "other" }), "adopt"],
    ["makes again what is gone", change("update"), ABSENT, "create"],
    ["updates, as the state has it, what cannot be looked up", change("update"), UNKNOWN, "update"],
    ["replaces", change("replace"), ABSENT, "replace"],
    [
      "replaces what is not to keep any of its fields",
      { ...change("update"), inputs: { ...inputsOf(MANIFEST), adopt: "replace" } },
      found(unlabelled),
      "replace",
    ],
    ["creates what is a secret as a whole", { ...change("create"), inputs: sealed }, found(), "create"],
    ["updates what is a secret as a whole", { ...change("update"), inputs: sealed }, found(), "update"],
  ])("%s", async (_, planned, lookup, expected) => {
    expect(await words([planned], lookup)).toEqual([expected]);
  });

  it("leaves out what stays the same, and names the rest in order", async () => {
    const changes = ["b", "c", "a"].map((name) => ({ ...change("create"), urn: name, name }));
    const resources = await plan([change("same"), ...changes], ABSENT);
    expect(resources.map(({ shown }) => `${shown.type} ${shown.name}`)).toEqual(
      ["a", "b", "c"].map((name) => `ConfigMap ${name}`),
    );
  });

  it("says what could not be looked up, and why", async () => {
    const named = { path: "metadata.namespace", after: "default" };
    const [created] = await plan([change("create")], UNKNOWN);
    expect(created).toMatchObject({
      shown: { notChecked: "whether it is created: forbidden", fields: [named] },
      lookupError: new Error("forbidden"),
    });
    const [deleted] = await plan([change("delete")], UNKNOWN);
    expect(deleted?.shown.notChecked).toBe("whether it is deleted: forbidden");
    const [updated] = await plan([change("update")], UNKNOWN);
    expect(updated?.shown).not.toHaveProperty("notChecked");
    expect(updated).not.toHaveProperty("effect");
  });

  it("has the object as it is and is to be, with the fields that change", async () => {
    const manifest = { ...MANIFEST, data: { a: "1" } };
    const [planned] = await plan([{ ...change("update"), inputs: inputsOf(manifest) }], found());
    expect(planned).toMatchObject({ inputs: { manifest }, live: { metadata: { uid: "uid-web" } }, effect: "update" });
    expect(planned?.shown.fields).toEqual([{ path: "data", after: { a: "1" } }]);
  });
});

describe("a resource under another name in the program", () => {
  const renamed = { ...change("create"), urn: "new", name: "renamed" };
  const [web, api] = [MANIFEST, manifestOf("api")];
  const replacement = (name: string, from: Manifest, to: Manifest): PlannedChange => {
    const old = { inputs: inputsOf(from), outputs: outputsOf({ manifest: from }) };
    return { ...change("replace"), urn: name, name, old, inputs: inputsOf(to) };
  };

  it("moves with what changes, and its former name deletes nothing", async () => {
    const inputs = inputsOf({ ...MANIFEST, data: { a: "1" } });
    const resources = await plan([change("delete"), { ...renamed, inputs }], found());
    expect(resources.map(({ shown }) => [shown.name, shown.operation, shown.fields])).toEqual([
      ["renamed", "move", [{ path: "data", after: { a: "1" } }]],
    ]);
  });

  it("is no move of another object", async () => {
    expect(await words([change("delete"), { ...renamed, inputs: inputsOf(api) }], found())).toEqual([
      "delete",
      "update",
    ]);
  });

  it("moves both ways", async () => {
    expect(await words([replacement("a", web, api), replacement("b", api, web)], found())).toEqual(["move", "move"]);
  });

  it("is a replacement where what it had is another's by no name", async () => {
    const former = { ...replacement("b", api, api), operation: "delete" } as const;
    const { inputs: _, ...deleted } = former;
    expect(await words([replacement("a", web, api), deleted], found())).toEqual(["replace"]);
  });

  it("is a replacement in place only of what keeps its name in the cluster", async () => {
    const effectOf = async (to: Manifest) => (await plan([replacement("a", web, to)], ABSENT))[0]?.effect;
    expect([await effectOf(web), await effectOf(api)]).toEqual(["replace", "create"]);
  });

  it("is created where it is gone", async () => {
    expect(await words([change("delete"), renamed], ABSENT)).toEqual(["create"]);
  });

  it("is no move of one that stays as it is", async () => {
    expect(await words([change("same"), renamed], found())).toEqual(["update"]);
  });
});

it("the id of an object is that of a whole manifest", () => {
  expect(idOf(MANIFEST)).toBe("v1/ConfigMap/default/web");
  for (const torn of [
    undefined,
    {},
    { ...MANIFEST, kind: 1 },
    { ...MANIFEST, apiVersion: 1 },
    { ...MANIFEST, metadata: {} },
    { ...MANIFEST, metadata: undefined },
  ]) {
    expect(idOf(torn)).toBeUndefined();
  }
});

it("the owner that the state has is an owner as well", () => {
  expect(ownersOf({ uid: "new" }, change("update").old)).toEqual(["new", acme.uid]);
  expect(ownersOf({ uid: "new" }, undefined)).toEqual(["new"]);
});
