import { randomUUID } from "node:crypto";
import { secret } from "@pulumi/pulumi/output";
import { beforeAll, describe, expect, it } from "vitest";
import { component, withParent } from "../../providers/dynamic";
import type { UpResult } from "../../src/automation/engine";
import type { BindingPlan } from "../../src/automation/planned-changes";
import { stockBeside, TestEngine } from "./test-engine";
import { Thing } from "./things";

type Values = Record<string, string>;

describe("an operation that is held to a plan", () => {
  let engine: TestEngine;
  const live = (stack: string) => engine.thingsOf(stack);
  beforeAll(async () => {
    engine = await TestEngine.open();
    return () => engine.close();
  });

  async function planFor(stack: string, values: Values, refresh = false): Promise<BindingPlan> {
    const preview = await engine.engine.preview(stack, () => engine.declare(stack, values), { plans: true, refresh });
    expect(preview.failures).toEqual([]);
    if (preview.plan === undefined) throw new Error("the preview has no plan");
    return preview.plan;
  }

  /** A stack of its own with these things. */
  async function stackOf(values: Values): Promise<string> {
    const stack = `s${randomUUID().slice(0, 8)}`;
    expect((await engine.up(stack, values)).failures).toEqual([]);
    return stack;
  }

  const reasons = ({ failures }: UpResult) => [...new Set(failures.map(({ reason }) => reason))];

  const before = { same: "1", changed: "1", dropped: "1", replaced: "1" };
  const wanted = { same: "1", changed: "2", added: "1", replaced: "afresh" };

  it.each([false, true])("does what was planned (refresh: %s)", async (refresh) => {
    const stack = await stackOf(before);
    const plan = await planFor(stack, wanted, refresh);
    const done = await engine.up(stack, wanted, { plan, refresh });
    expect(done.failures).toEqual([]);
    expect(live(stack)).toEqual(wanted);
  });

  it("makes a stack that was planned before there was one", async () => {
    const plan = await planFor("fresh", { a: "1" });
    expect((await engine.up("fresh", { a: "1" }, { plan })).failures).toEqual([]);
    expect(live("fresh")).toEqual({ a: "1" });
  });

  it.each<[string, Values]>([
    ["another value", { ...wanted, changed: "3" }],
    ["a value that was to stay", { ...wanted, same: "2" }],
    ["one resource more", { ...wanted, more: "1" }],
    ["one left out", { changed: "2", added: "1", replaced: "afresh" }],
    ["one kept that was to go", { ...wanted, dropped: "1" }],
    ["one not replaced", { ...wanted, replaced: "1" }],
  ])("refuses %s, and does nothing that was not planned", async (_difference, other) => {
    const stack = await stackOf(before);
    const plan = await planFor(stack, wanted);
    const done = await engine.up(stack, other, { plan });
    expect(reasons(done)).toEqual(["PlanOutdated"]);
    expect(done.interrupted).toBe(false);
    const states: Record<string, (string | undefined)[]> = {
      same: ["1"],
      changed: ["1", "2"],
      dropped: ["1", undefined],
      replaced: ["1", "afresh", undefined],
      added: [undefined, "1"],
      more: [undefined],
    };
    for (const [name, allowed] of Object.entries(states)) expect(allowed, name).toContain(live(stack)[name]);
  });

  it.each([
    ["correct what has drifted", "drifted"],
    ["make again what was removed", undefined],
  ])("refuses to %s since", async (_, found) => {
    const stack = await stackOf({ a: "1", b: "1" });
    const plan = await planFor(stack, { a: "1", b: "2" }, true);
    if (found === undefined) engine.things.live.delete(`${stack}/a`);
    else engine.things.live.set(`${stack}/a`, found);
    const done = await engine.up(stack, { a: "1", b: "2" }, { plan, refresh: true });
    expect(reasons(done)).toEqual(["PlanOutdated"]);
    expect(live(stack).a).toBe(found);
  });

  it("refuses what another update has done in between", async () => {
    const stack = await stackOf({ a: "1" });
    const plan = await planFor(stack, { a: "1", b: "1" });
    await engine.up(stack, { a: "1", b: "other" });
    expect(reasons(await engine.up(stack, { a: "1", b: "1" }, { plan }))).toEqual(["PlanOutdated"]);
    expect(live(stack)).toEqual({ a: "1", b: "other" });
  });

  it("keeps a provider's failure apart", async () => {
    const stack = await stackOf({ a: "1" });
    const plan = await planFor(stack, { a: "retryable" });
    expect(reasons(await engine.up(stack, { a: "retryable" }, { plan }))).toEqual(["LockTimeout"]);
  });

  it("holds secrets, which are encrypted in the plan", async () => {
    const program = (value: string) => () => {
      new Thing("a", { key: "secret/a", value: secret(value) });
    };
    const plan = (await engine.engine.preview("secret", program("hush"), { plans: true })).plan;
    expect(JSON.stringify(plan)).not.toContain("hush");
    expect(reasons(await engine.engine.up("secret", program("other"), { plan }))).toEqual(["PlanOutdated"]);
    expect(live("secret")).toEqual({});
    expect((await engine.engine.up("secret", program("hush"), { plan })).failures).toEqual([]);
    expect(live("secret")).toEqual({ a: "hush" });
  });

  it("is of components whose types have two parts", async () => {
    const program = () => {
      withParent(component("acme:Pair", "pair"), () => new Thing("a", { key: "pair/a", value: "1" }));
    };
    const { plan, failures } = await engine.engine.preview("pair", program, { plans: true });
    expect(failures).toEqual([]);
    expect((await engine.engine.up("pair", program, { plan })).failures).toEqual([]);
    expect(live("pair")).toEqual({ a: "1" });
    expect((await engine.engine.history("pair"))?.[0]?.changes).toMatchObject([
      { type: "Thing", name: "a" },
      { operation: "create", type: "Pair", name: "pair" },
    ]);
  });

  it("destroys exactly what was previewed", async () => {
    const stack = await stackOf({ a: "1" });
    const { plan } = await engine.engine.previewDestroy(stack, { plans: true });
    await engine.up(stack, { a: "1", b: "1" });
    expect(reasons(await engine.engine.destroy(stack, { plan }))).toEqual(["PlanOutdated"]);
    expect(live(stack)).toEqual({ a: "1", b: "1" });
    const { plan: again } = await engine.engine.previewDestroy(stack, { plans: true });
    expect((await engine.engine.destroy(stack, { plan: again })).failures).toEqual([]);
    expect(live(stack)).toEqual({});
  });

  it("takes no plan of another operation", async () => {
    const stack = await stackOf({ a: "1" });
    const { plan: destroy } = await engine.engine.previewDestroy(stack, { plans: true });
    expect((await engine.up(stack, { a: "2" }, { plan: destroy })).failures).toMatchObject([
      { reason: "UpdateFailed", message: "the plan is of another operation" },
    ]);
    const plan = await planFor(stack, { a: "2" });
    expect(reasons(await engine.engine.destroy(stack, { plan }))).toEqual(["PlanOutdated"]);
    expect(live(stack)).toEqual({ a: "1" });
  });

  it("is refused by the engine that cannot be held", async () => {
    const stock = await stockBeside(engine, "stock");
    await expect(stock.preview("x", () => {}, { plans: true })).rejects.toMatchObject({ reason: "PlansUnsupported" });
  });
});
