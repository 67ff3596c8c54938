import { describe, expect, it, vi } from "vitest";
import type { DynamicProvider, ProviderContext } from "../../providers/provider";
import { served } from "../../providers/served";
import { plainProvider, testContext } from "./test-context";

interface Thing {
  at?: string;
  fails?: boolean;
  settled?: boolean;
}

/** One update of things at places: a new provider for each, whose `deleted` are the ids that it was asked to delete. */
function update(serve = served) {
  const deleted: string[] = [];
  const provider = plainProvider<Thing>({
    identify: ({ at }) => at,
    diff: async (_id, olds, news) =>
      olds.settled ? { changes: false } : { changes: true, replaces: ["at"], deleteBeforeReplace: olds.at === news.at },
    create: async (inputs) => {
      if (inputs.fails) throw new Error("it fails");
      return { id: "new", outs: inputs };
    },
    delete: async (id) => void deleted.push(id),
  });
  const moving = serve(provider);
  return { deleted, moving, run: <T>(work: (moving: Told) => Promise<T>) => work(told(moving, testContext())) };
}

type Told = ReturnType<typeof told>;

/** The provider's calls with a context. */
function told(moving: DynamicProvider<Thing, Thing>, context: ProviderContext) {
  return {
    check: (olds: Thing, news: Thing) => moving.check({ ...olds }, { ...news }, context),
    diff: (id: string, olds: Thing, news: Thing) => moving.diff(id, olds, news, context),
    create: (inputs: Thing) => moving.create(inputs, context),
    delete: (id: string, outs: Thing) => moving.delete(id, outs, context),
  };
}

describe("a deletion", () => {
  it("passes over what another resource of the update stands for", async () => {
    const { deleted, run } = update();
    await run(async (moving) => {
      await moving.check({}, { at: "x" });
      await moving.create({ at: "x" });
      await moving.delete("old", { at: "x" });
      await moving.delete("other", { at: "y" });
    });
    expect(deleted).toEqual(["other"]);
  });

  it("passes over what two resources have exchanged", async () => {
    const { deleted, run } = update();
    await run(async (moving) => {
      for (const [old, at] of Object.entries({ x: "y", y: "x" })) {
        await moving.check({ at: old }, { at });
        await moving.diff("", { at: old }, { at });
        await moving.create({ at });
      }
      await moving.delete("x", { at: "x" });
      await moving.delete("y", { at: "y" });
    });
    expect(deleted).toEqual([]);
  });

  it.each([
    ["is done before the resource itself is made again", { check: true, settled: false }, ["old"]],
    ["passes over what a resource has that stays as it is", { check: true, settled: true }, []],
    ["is done after a refresh, which compares what no program registers", { check: false, settled: true }, ["old"]],
  ])("%s", async (_, { check, settled }, expected) => {
    const { deleted, run } = update();
    await run(async (moving) => {
      if (check) await moving.check({ at: "x" }, { at: "x" });
      await moving.diff("", { at: "x", settled }, { at: "x" });
      await moving.delete("old", { at: "x" });
      if (!settled) await moving.create({ at: "x" });
    });
    expect(deleted).toEqual(expected);
  });

  it.each([true, false])("waits for the resource that is to take over; it fails: %s", async (fails) => {
    const { deleted, run } = update();
    const work = run(async (moving) => {
      await moving.check({}, { at: "x", fails });
      if (fails) await moving.create({ at: "x", fails }).catch(() => undefined);
      await moving.delete("old", { at: "x" });
    });
    await expect(work).rejects.toMatchObject({ reason: "Moving", errorClass: "retryable" });
    expect(deleted).toEqual([]);
  });

  it("knows nothing of other updates, nor of what is not known yet", async () => {
    const { deleted, moving, run } = update();
    await moving.check({}, { at: "x" }, testContext());
    await run(async (moving) => {
      await moving.check({}, {});
      await moving.delete("old", { at: "x" });
      await moving.delete("unknown", {});
    });
    await moving.create({ at: "y" });
    await moving.delete("none's", { at: "y" });
    expect(deleted).toEqual(["old", "unknown", "none's"]);
  });

  it("of the SDK's script passes over it also when another provider begins in between", async () => {
    vi.resetModules(); // the script serves one update, and ends
    const { served: scripted } = await import("../../providers/served.js");
    const [{ deleted, moving }, other] = [update(scripted), update(scripted)];
    await moving.configure?.();
    await moving.check({}, { at: "x" });
    await moving.create({ at: "x" });
    await other.moving.configure?.();
    await moving.delete("old", { at: "x" });
    vi.resetModules();
    expect(deleted).toEqual([]);
  });
});
