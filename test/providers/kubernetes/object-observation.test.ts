import { describe, expect, it } from "vitest";
import { liveFields } from "../../../providers/kubernetes/field-differences";
import type { ObjectInputs, ObjectOutputs } from "../../../providers/kubernetes/object-inputs";
import { overwrittenBy, removedFrom } from "../../../providers/kubernetes/object-observation";
import type { LiveObject, Manifest, ObjectMeta } from "../../../providers/kubernetes/types";
import { acme, applied, globex, liveObject, marksOf } from "../../objects";

const FIELDS = {
  "f:metadata": { "f:labels": { ".": {}, "f:team": {} } },
  "f:spec": {
    "f:replicas": {},
    "f:selector": {},
    "f:ports": { ".": {}, 'k:{"port":80}': { ".": {}, "f:port": {}, "f:name": {} } },
    "f:args": {},
  },
};
const manifest: Manifest = {
  apiVersion: "example.com/v1",
  kind: "Thing",
  metadata: { name: "a", namespace: "default", labels: { team: "x" } },
  spec: { replicas: 1, selector: { app: "a" }, ports: [{ port: 80, name: "web" }], args: ["1"] },
};

function live(spec: object = {}, metadata: Partial<ObjectMeta> = {}): LiveObject {
  const { labels, annotations } = marksOf(acme, { created: true });
  const marks = { labels: { team: "x", ...labels }, annotations: { others: "1", ...annotations } };
  const managedFields = [applied("kindstack", FIELDS)];
  return liveObject({
    ...{ ...manifest, status: { phase: "Ready" } },
    metadata: { ...manifest.metadata, ...marks, managedFields, ...metadata },
    spec: { ...(manifest.spec as object), ...spec },
  });
}

const inputs = (changes: object = {}, more: Partial<ObjectInputs> = {}): ObjectInputs => ({
  manifest: { ...manifest, spec: { ...(manifest.spec as object), ...changes } },
  owner: acme,
  ...more,
});
const { uid, resourceVersion } = live().metadata;
const outs: ObjectOutputs = { ...inputs(), uid, resourceVersion, created: true, fields: "f", drifted: false };
const updated = (object: LiveObject | undefined, changes: object = { replicas: 2 }, former: ObjectOutputs = outs) =>
  overwrittenBy(inputs(changes), object, [acme.uid], former);

describe("the live fields of a manifest", () => {
  it("are those that it sets; what is one value to the API server is one field", () => {
    const ports = [{ port: 81 }, { port: 80, name: "x", more: 1 }];
    const object = live({ replicas: 3, selector: { app: "a", more: "b" }, ports, others: 1 });
    expect(Object.fromEntries(liveFields(manifest, object))).toEqual({
      "metadata.labels.team": "x",
      "spec.replicas": 3,
      "spec.selector": { app: "a", more: "b" },
      "spec.ports[port=80].port": 80,
      "spec.ports[port=80].name": "x",
      "spec.args": ["1"],
    });
  });

  it("are null where there are none", () => {
    const object = live({ replicas: undefined, ports: [] });
    const fields = Object.fromEntries(liveFields(manifest, object));
    expect(fields).toMatchObject({ "spec.replicas": null, "spec.ports[port=80]": null });
  });

  it("are none of a map that the manifest leaves empty, unless it is one value", () => {
    const empty = { ...manifest, metadata: { name: "a" }, spec: { selector: {} } };
    expect(liveFields(empty, live())).toEqual([["spec.selector", { app: "a" }]]);
  });
});

describe("what an update overwrites", () => {
  it.each<[string, LiveObject]>([
    ["its version", live({}, { resourceVersion: "8" })],
    ["its status", { ...live(), status: { phase: "Lost" } }],
    ["annotations of others", live({}, { annotations: { ...live().metadata.annotations, others: "2" } })],
    ["an item of others", live({ ports: [{ port: 80, name: "web" }, { port: 90 }] })],
    ["who manages it", live({}, { managedFields: [applied("kindstack", FIELDS), applied("mesh", {})] })],
  ])("has nothing of %s", (_what, other) => {
    expect(updated(other)).toEqual(updated(live()));
  });

  it.each<[string, LiveObject | undefined]>([
    ["a value", live({ replicas: 5 })],
    ["a value in an item of a list", live({ ports: [{ port: 80, name: "other" }] })],
    ["a list that is one value", live({ args: ["1", "2"] })],
    ["the object", live({}, { uid: "v" })],
    ["its owner", live({}, { labels: { team: "x", ...marksOf(globex, { created: true }).labels } })],
    ["that it was created", live({}, { annotations: {} })],
    ["that there is one", undefined],
  ])("tells of another %s", (_what, other) => {
    expect(updated(other)).not.toEqual(updated(live()));
  });

  it("has what it removes, and nothing that is left to others", () => {
    const former = { ...outs, manifest: inputs({ paused: true }).manifest };
    const paused = updated(live({ paused: false }), { replicas: 2 }, former);
    expect(paused).toMatchObject({ fields: { "spec.paused": false } });
    const owner = { ...acme, ignoreFields: ["Thing:spec.replicas", "Thing:spec.selector.more"] };
    const ignoring = (spec: object) => overwrittenBy(inputs({ args: [] }, { owner }), live(spec), [acme.uid], outs);
    expect(ignoring({ replicas: 5, selector: { app: "a", more: "b" } })).toEqual(ignoring({ replicas: 6 }));
  });

  it("is nothing where all is as it is to be", () => {
    expect(updated(live({ replicas: 2 }))).toBeNull();
    // Kindstack still has a field that the manifest no longer has.
    const more = { ...FIELDS, "f:data": { "f:left": {} } };
    expect(updated(live({ replicas: 2 }, { managedFields: [applied("kindstack", more)] }))).not.toBeNull();
  });

  it("of what is made is nothing where there is nothing, or what waits for its end", () => {
    const made = (object: LiveObject | undefined) =>
      overwrittenBy(inputs({ replicas: 2 }), object, [acme.uid], undefined);
    expect(made(undefined)).toBeNull();
    expect(made(live({}, { deletionTimestamp: "2027-01-01T00:00:00Z" }))).toBeNull();
    expect(made(live())).not.toBeNull();
  });
});

describe("what a deletion overwrites", () => {
  it("is nothing of what ends, or has been released", () => {
    expect(removedFrom(outs, live({}, { deletionTimestamp: "2027-01-01T00:00:00Z" }))).toBeNull();
    expect(removedFrom(outs, live({}, { managedFields: [applied("mesh", {})] }))).toBeNull();
  });

  it("is the same of an object that has lost its marks", () => {
    expect(removedFrom(outs, live({}, { labels: { team: "x" }, annotations: {} }))).toEqual(removedFrom(outs, live()));
    expect(removedFrom(outs, live({ replicas: 9 }))).not.toEqual(removedFrom(outs, live()));
  });
});

describe("an update that knows no input yet", () => {
  const unknown = "04da6b54-80e4-46f7-96ec-b56ff0331ba9" as never;

  it("overwrites what the state has, and is never done", () => {
    const nothing = { manifest: unknown, owner: unknown };
    expect(overwrittenBy(nothing, live(), [acme.uid], outs)).toMatchObject({ fields: { "spec.replicas": 1 } });
    expect(overwrittenBy(nothing, undefined, [acme.uid], undefined)).toBeNull();
  });
});
