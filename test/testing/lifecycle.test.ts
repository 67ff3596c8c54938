import { describe, expect, it } from "vitest";
import type { DynamicProvider } from "../../providers/provider";
import { checkLifecycle } from "../../src/testing/lifecycle";

interface Note {
  text: string;
}

/** Notes in memory; `faults` replace methods by wrong ones. */
function notes(faults: Partial<DynamicProvider<Note, Note>> = {}): DynamicProvider<Note, Note> {
  const live = new Map<string, Note>();
  return {
    check: async (_, news) => ({ inputs: news, failures: [] }),
    diff: async (_, olds, news) => ({ changes: olds.text !== news.text }),
    async create(inputs, context) {
      context?.fence.check();
      live.set("note", inputs);
      return { id: "note", outs: inputs };
    },
    async read(id) {
      const props = live.get(id);
      return props === undefined ? {} : { id, props };
    },
    async update(id, _, news, context) {
      context?.fence.check();
      live.set(id, news);
      return { outs: news };
    },
    async delete(id, _outs, context) {
      context?.fence.check();
      live.delete(id);
    },
    async release() {},
    async observe(inputs) {
      const found = live.get("note");
      return found === undefined || found.text === inputs?.text ? null : found;
    },
    ...faults,
  };
}

const run = (faults?: Partial<DynamicProvider<Note, Note>>) =>
  checkLifecycle(notes(faults), { text: "Sunday" }, { text: "Monday" });

describe("checkLifecycle", () => {
  it("takes a provider that is as an engine needs it", async () => {
    await run();
  });

  it.each<[string, Partial<DynamicProvider<Note, Note>>]>([
    ["check refuses text: no", { check: async () => ({ inputs: {}, failures: [{ property: "text", reason: "no" }] }) }],
    ["create is followed by a read that finds nothing", { read: async () => ({}) }],
    ["create is followed by a diff with a change", { diff: async () => ({ changes: true }) }],
    ["diff shows no change", { diff: async () => ({ changes: false }) }],
    [
      "update is followed by a read that differs:\n  text is ",
      { update: async (_id, _olds, news) => ({ outs: news }) },
    ],
    ["delete leaves the resource", { delete: async () => {} }],
    ["create is followed by an observe that tells of something", { observe: async () => "there" }],
    ["a second create is followed by an observe that tells of nothing", { observe: async () => null }],
    [
      "a second create is followed by two calls of observe that differ",
      { observe: async (_inputs, outs) => (outs === undefined ? null : Math.random()) },
    ],
  ])("names the step: %s", async (message, faults) => {
    await expect(run(faults)).rejects.toThrow(message);
  });

  it("names the calls that write without a look at the fence", async () => {
    const { create, update, ...others } = notes();
    const provider: DynamicProvider<Note, Note> = {
      ...others,
      create: (inputs) => create(inputs),
      update: (id, olds, news) => update(id, olds, news),
    };
    await expect(checkLifecycle(provider, { text: "Sunday" }, { text: "Monday" })).rejects.toThrow(
      "create, update never calls context?.fence.check()",
    );
  });
});
