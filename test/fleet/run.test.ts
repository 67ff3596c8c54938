import Type from "typebox";
import { Check } from "typebox/value";
import { describe, expect, it, vi } from "vitest";
import type { LiveObject } from "../../providers/kubernetes/client";
import { KubernetesObject, OBJECT_STUB } from "../../providers/kubernetes/object";
import { completed, requestsOf } from "../../src/cli/fleet-requests";
import { type Declared, declarationsSchema, FLEET_FORMAT, type Fleet } from "../../src/fleet/artefact";
import { runFleet as run } from "../../src/fleet/run";
import type { ProgramContext } from "../../stacks/contract/capabilities";
import { type AnyKind, defineKind } from "../../stacks/contract/kind";
import type { KindObject } from "../../stacks/contract/object";
import { liveObject } from "../objects";

const runFleet = (fleet: Fleet, kinds: readonly AnyKind[]) => run(fleet, kinds, () => {});
type Program = (object: KindObject<{ text: string }>, context: ProgramContext) => void;
const names = { group: "example.com", version: "v1", kind: "Note", plural: "notes", singular: "note" } as const;

function kindOf(program: Program, more: Partial<AnyKind> = {}): AnyKind {
  const schemas = { spec: Type.Object({ text: Type.String() }), status: Type.Object({}) };
  const rest = { ...schemas, columns: [], directory: __dirname, report: () => ({}), description: "" };
  const owns = ["ConfigMap", "Secret", "Pod"].map((kind) => ({ apiVersion: "v1", kind }));
  return { ...defineKind({ ...names, scope: "Namespaced", ...rest, owns, program } as never), ...more } as AnyKind;
}

const live = (name: string, text: unknown = name) =>
  ({
    ...{ apiVersion: "example.com/v1", kind: "Note", spec: { text } },
    metadata: { name, namespace: "team-a", uid: `uid-${name}`, resourceVersion: "1", generation: 3 },
  }) as LiveObject;

const NOTHING_BESIDES = { alternatives: [], stored: ["v1"], owned: { types: [], objects: [] }, watched: [] };
const fleetOf = (objects: LiveObject[], changes: Partial<Fleet["kinds"][number]> = {}): Fleet => ({
  ...{ format: FLEET_FORMAT, at: "2026-11-27T00:00:00Z", references: [], notes: [], unchecked: [] },
  kinds: [{ kind: "notes.example.com", objects, ...NOTHING_BESIDES, ...changes }],
});

function make(
  kind: string,
  { metadata: { name, namespace = "" } }: KindObject,
  { owner }: ProgramContext,
  data: object,
) {
  new KubernetesObject(name, { owner, manifest: { apiVersion: "v1", kind, metadata: { name, namespace }, ...data } });
}
/** A program that makes one ConfigMap, with what this gives as its data. */
const giving =
  (dataOf: (...given: Parameters<Program>) => object): Program =>
  (object, context) =>
    make("ConfigMap", object, context, { data: dataOf(object, context) });
const giveText = giving(({ spec: { text } }) => ({ text }));
const outcomeOf = async (program: Program, object = live("one"), more: Partial<AnyKind> = {}) =>
  (await runFleet(fleetOf([object]), [kindOf(program, more)])).objects[0]?.outcome;

describe("the programs of a fleet", () => {
  it("give what they declare as data, for objects as they were fetched", async () => {
    const declarations = await runFleet(fleetOf([live("one"), live("two")]), [kindOf(giveText)]);
    expect(Check(declarationsSchema, declarations)).toBe(true);
    expect(declarations.providers).toMatchObject({ [OBJECT_STUB]: 1 });
    expect(declarations.objects).toMatchObject([
      { kind: "notes.example.com", namespace: "team-a", name: "one", uid: "uid-one", generation: 3 },
      { outcome: { resources: [{ provider: OBJECT_STUB, inputs: { manifest: { data: { text: "two" } } } }] } },
    ]);
  });

  it("give no value of a Secret, whether they mark it or not", async () => {
    const program: Program = (...given) => make("Secret", ...given, { stringData: { a: "hunter2" } });
    const outcome = await outcomeOf(program);
    const resources = [{ type: expect.stringMatching(/:Secret$/), secret: true }];
    expect(outcome).toMatchObject({ type: "declared", resources });
    expect(JSON.stringify(outcome)).not.toContain("hunter2");
  });

  it("tell nothing where two runs differ, such as by a count, by chance, or by what the first one left in its object", async () => {
    let runs = 0;
    const message = expect.stringMatching(/^its program declares something else each time it runs: one\.inputs/);
    for (const program of [giving(() => ({ count: String(runs++) })), giving(() => ({ at: String(Math.random()) }))]) {
      expect(await outcomeOf(program)).toMatchObject({ type: "unchecked", message });
    }
    const pushed = giving((object) => {
      const { metadata } = object as { metadata: { labels?: Record<string, string> } };
      metadata.labels = { ...metadata.labels, ran: `${metadata.labels?.ran ?? ""}x` };
      return { ...metadata.labels };
    });
    expect(await outcomeOf(pushed)).toMatchObject({ type: "declared" });
  });

  it("that never end are run for three objects, as each takes a minute", async () => {
    vi.useFakeTimers();
    try {
      const never = kindOf(() => new Promise<void>(() => {}) as never);
      const all = ["a", "b", "c", "d", "e"].map((name) => live(name));
      const running = runFleet(fleetOf(all), [never]);
      await vi.advanceTimersByTimeAsync(200_000);
      const outcomes = (await running).objects.map(({ outcome }) => outcome);
      expect(outcomes.map(({ type }) => type)).toEqual(["failed", "failed", "failed", "unchecked", "unchecked"]);
      expect(outcomes.at(-1)).toMatchObject({ message: expect.stringContaining("was not run") });
    } finally {
      vi.useRealTimers();
    }
  });

  it("fail alone, and what their schema refuses is invalid", async () => {
    const program: Program = (object) => {
      throw new Error(`nothing for ${object.metadata.name}`);
    };
    expect(await outcomeOf(program)).toEqual({ type: "failed", message: "nothing for one" });
    const message = expect.stringContaining("text");
    expect(await outcomeOf(program, live("one", 7))).toMatchObject({ type: "invalid", message });
  });

  it("are told nothing that was not fetched", async () => {
    const reads = { settings: { apiVersion: "v1", kind: "ConfigMap", name: () => "settings" } };
    const liveState = { reads: [{ apiVersion: "v1", kind: "Pod" }], needsReconcile: () => [] };
    const watch = { apiVersion: "v1", kind: "Node", labelSelector: "a", selectorOf: () => "a", keysOf: () => [] };
    const message = expect.stringContaining("it is not in the file");
    for (const capabilities of [{ reads }, { liveState }, { watches: [watch] }]) {
      const outcome = await outcomeOf(() => undefined, live("one"), { capabilities });
      expect(outcome).toMatchObject({ type: "unchecked", message });
    }
  });

  it("see their own resources and not those that others have marked elsewhere", async () => {
    const labels = { "kindstack.dev/owner-uid": "uid-one" };
    const pod = (namespace: string) => liveObject({ metadata: { name: namespace, namespace, labels } });
    const owned = { types: [{ apiVersion: "v1", kind: "Pod" }], objects: [pod("team-a"), pod("team-b")] };
    const program = giving((_, context) => ({ seen: context.owned.map(({ metadata }) => metadata.name).join() }));
    const liveState = { reads: owned.types, needsReconcile: () => [] };
    const kind = kindOf(program, { capabilities: { liveState } });
    const { objects } = await runFleet(fleetOf([live("one")], { owned }), [kind]);
    expect(objects[0]?.outcome).toMatchObject({ resources: [{ inputs: { manifest: { data: { seen: "team-a" } } } }] });
  });

  it("name the kinds of which nothing was fetched", async () => {
    const { notFetched } = await runFleet({ ...fleetOf([]), kinds: [] }, [kindOf(() => undefined)]);
    expect(notFetched).toEqual(["notes.example.com"]);
  });

  it("leave nothing out: an object of which they tell nothing, or as of another one, is unchecked", async () => {
    const fleet = fleetOf([live("one"), live("two"), live("three")]);
    const said = await runFleet(fleet, [kindOf(() => undefined)]);
    const [one, two] = said.objects as [Declared, Declared];
    const { objects } = completed(fleet, { ...said, objects: [one, { ...two, uid: "another" }] });
    expect(objects.map(({ name, uid, outcome }) => [name, uid, outcome.type])).toEqual([
      ["one", "uid-one", "declared"],
      ["two", "another", "declared"],
      ["two", "uid-two", "unchecked"],
      ["three", "uid-three", "unchecked"],
    ]);
    expect(completed(fleet, said)).toEqual(said);
  });
});

describe("the requests for declarations", () => {
  it("have a limit of resources", async () => {
    const program: Program = (object, context) => {
      for (let n = 0; n < 400; n++) {
        const metadata = { ...object.metadata, name: `${object.metadata.name}-${n}` };
        make("ConfigMap", { ...object, metadata }, context, {});
      }
    };
    const objects = Array.from({ length: 30 }, (_, n) => live(`n${n}`));
    const declarations = await runFleet(fleetOf(objects), [kindOf(program)]);
    expect(requestsOf(declarations, { refresh: false }).map((one) => one.objects.length)).toEqual([12, 12, 6]);
  });

  it("are within the limits of an operator, and have each object once", async () => {
    const objects = [
      ...Array.from({ length: 1_200 }, (_, n) => live(`n${n}`)),
      ...["a", "b", "c"].map((n) => live(n, "x".repeat(2e6))),
    ];
    const declarations = await runFleet(fleetOf([...objects, live("d", "x".repeat(5e6))]), [kindOf(giveText)]);
    const requests = requestsOf(declarations, { refresh: false });
    expect(requests.map((one) => one.objects.length)).toEqual([500, 500, 201, 1, 2]);
    for (const request of requests) expect(JSON.stringify(request).length).toBeLessThan(4 * 1024 * 1024);
    expect(requests.at(-1)?.objects.at(-1)?.outcome).toMatchObject({ type: "unchecked" });
  });
});
