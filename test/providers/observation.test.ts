import { describe, expect, it } from "vitest";
import { holdOf, withObserved } from "../../providers/observation";
import type { ProviderContext } from "../../providers/provider";
import { served } from "../../providers/served";
import { plainProvider, testContext } from "./test-context";

const URN = "urn:pulumi:s::kindstack::test:Thing::a";
const UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9";
const observed = (live: unknown, inputs: object = {}) =>
  new Map([[URN, withObserved(undefined, URN, "Update", live, inputs)]]);

describe("a hold", () => {
  it("admits what was observed, whatever the order of its keys", () => {
    const hold = holdOf(observed({ a: 1, b: { c: 2, d: 3 } }), URN, "Update");
    expect(hold.admits({ b: { d: 3, c: 2 }, a: 1 })).toBe(true);
    expect(hold.admits({ a: 1, b: { c: 2, d: 4 } })).toBe(false);
  });

  it("always admits a write over nothing", () => {
    expect(holdOf(observed({ a: 1 }), URN, "Update").admits(null)).toBe(true);
    expect(holdOf(observed(null), URN, "Update").admits({ a: 1 })).toBe(false);
  });

  it("is for one call: what a deletion may overwrite, a creation may not", () => {
    expect(() => holdOf(observed({ a: 1 }), URN, "Create")).toThrow(
      expect.objectContaining({ reason: "PlanOutdated" }),
    );
    expect(() => holdOf(new Map(), URN, "Update")).toThrow(expect.objectContaining({ errorClass: "retryable" }));
  });

  it("of a resource that is replaced admits both of its calls", () => {
    const steps: ["Create" | "Delete", unknown][] = [
      ["Create", { a: 1 }],
      ["Delete", { a: 2 }],
    ];
    const inOrder = (all: typeof steps) =>
      all.reduce<string | undefined>((before, [call, live]) => withObserved(before, URN, call, live, {}), undefined);
    const forwards = inOrder(steps) as string;
    expect(inOrder(steps.toReversed())).toBe(forwards);
    const both = new Map([[URN, forwards]]);
    expect(holdOf(both, URN, "Create").admits({ a: 1 })).toBe(true);
    expect(holdOf(both, URN, "Delete").admits({ a: 2 })).toBe(true);
    expect(holdOf(both, URN, "Create").admits({ a: 2 })).toBe(false);
  });

  it("gives inputs as far as they were known", () => {
    const hold = holdOf(observed({}, { a: [{ b: UNKNOWN }, 1], c: "known" }), URN, "Update");
    expect(hold.asObserved({ a: [{ b: { deep: 1 } }, 1], c: "known" })).toEqual({ a: [{ b: UNKNOWN }, 1], c: "known" });
    const known = { a: 1 };
    expect(holdOf(observed({}), URN, "Update").asObserved(known)).toBe(known);
  });

  it("tells nothing of what was observed but a digest", () => {
    expect([...observed({ password: "hush" }).values()].join()).not.toMatch(/hush|password/);
  });
});

describe("a provider that does not compare in its writes", () => {
  const written: string[] = [];
  let live: unknown = "1";
  const write = (call: string) => async () => {
    written.push(call);
    return { id: "a", outs: {} };
  };
  const plain = plainProvider({
    ...{ create: write("create"), update: write("update") },
    delete: async () => void written.push("delete"),
    release: async () => void written.push("release"),
    observe: async () => live,
  });
  const provider = served(plain);
  const calls: [string, (context?: ProviderContext) => Promise<unknown>][] = [
    ["create", (context) => provider.create({}, context)],
    ["update", (context) => provider.update("a", {}, {}, context)],
    ["delete", (context) => provider.delete("a", {}, context)],
    ["release", (context) => provider.release("a", {}, context)],
  ];

  it.each(calls)("looks before it writes: %s", async (name, call) => {
    written.length = 0;
    live = "1";
    const hold = holdOf(observed("1"), URN, "Update");
    await call(testContext({ hold }));
    live = "2";
    await expect(call(testContext({ hold }))).rejects.toMatchObject({ reason: "PlanOutdated" });
    await call(); // in an update that is not held
    expect(written).toEqual([name, name]);
  });

  it("does not look where it compares itself, or has nothing to tell", async () => {
    written.length = 0;
    live = "2";
    const context = testContext({ hold: holdOf(observed("1"), URN, "Update") });
    const { observe: _, ...untold } = plain;
    await served(untold).release("a", {}, context);
    await served({ ...plain, comparesInWrite: true }).release("a", {}, context);
    expect(written).toEqual(["release", "release"]);
  });
});
