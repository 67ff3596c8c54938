import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { GUARD_STUB, provider } from "../../providers/guard";
import type { WorkContext } from "../../providers/provider";
import { GUARD_TYPE } from "../../providers/urn";
import type { StackEngine } from "../../src/automation/engine";
import { testContext } from "../providers/test-context";
import { stockBeside, TestEngine } from "./test-engine";

const object = { apiVersion: "example.com/v1", kind: "Shelf", namespace: "team", name: "books", uid: "the-uid" };
const context: WorkContext = { ...testContext(), object };

describe("the guard of a stack", () => {
  let test: TestEngine;
  let stock: StackEngine;
  beforeAll(async () => {
    test = await TestEngine.open(undefined, {}, [[GUARD_STUB, provider]]);
    stock = await stockBeside(test, "stock");
  });
  afterAll(async () => {
    await stock.close();
    await test.close();
  });
  const guardsOf = async (stack: string) => {
    const state = await test.engine.exportStack(stack);
    return (state?.deployment.resources ?? []).filter(({ type }) => type === GUARD_TYPE);
  };
  const up = (stack: string, values: Record<string, string>, of: WorkContext | undefined = context) =>
    test.up(stack, values, { context: of });

  it("is in the state of what is worked on for an object, and depends on all resources", async () => {
    const { summary, resources } = await up("a", { one: "1", two: "2" });
    expect(summary.resourceChanges).toEqual({ create: 2 });
    expect(resources).toHaveLength(2);
    const [guard, ...more] = await guardsOf("a");
    expect(more).toEqual([]);
    expect(guard?.dependencies).toHaveLength(2);
    expect(guard?.outputs).toMatchObject({ owner: { uid: "the-uid", description: "Shelf.example.com/team/books" } });
  });

  it("comes to a stack that has none with an update that changes nothing", async () => {
    await test.up("b", { one: "1" });
    expect(await guardsOf("b")).toEqual([]);
    expect((await up("b", { one: "1" })).summary.resourceChanges).toEqual({});
    expect(await guardsOf("b")).toHaveLength(1);
  });

  it("protects what a failed update has made", async () => {
    expect((await up("c", { one: "1", two: "terminal" })).summary.result).toBe("failed");
    expect(await guardsOf("c")).toMatchObject([{ dependencies: [expect.stringMatching(/one$/)] }]);
  });

  it("is in the way of no update and no deletion, of either engine", async () => {
    await up("d", { one: "1", two: "2" });
    const changed = await up("d", { one: "afresh", three: "3" });
    expect(changed).toMatchObject({ failures: [], summary: { result: "succeeded" } });
    expect(await guardsOf("d")).toMatchObject([{ dependencies: [expect.anything(), expect.anything()] }]);

    const byStock = await stock.up("d", () => test.declare("d", { one: "afresh", three: "3" }), { context });
    expect(byStock).toMatchObject({ failures: [], summary: { resourceChanges: {} } });
    expect(await guardsOf("d")).toEqual([]);

    await up("d", { one: "afresh", three: "3" });
    expect((await test.engine.destroy("d", { context })).deleted).toHaveLength(2);
    expect(await test.engine.exportStack("d")).toBeUndefined();
    await up("e", { one: "1" });
    expect(await stock.destroy("e", { context })).toMatchObject({ failures: [] });
    expect([...test.things.live.keys()].filter((key) => /^[de]\//.test(key))).toEqual([]);
  });
});
