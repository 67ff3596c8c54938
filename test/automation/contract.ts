import { join } from "node:path";
import { version } from "@pulumi/pulumi/version";
import { beforeAll, describe, expect, inject, it } from "vitest";
import { component, withParent } from "../../providers/dynamic";
import { TerminalError } from "../../providers/errors";
import { ProviderHost } from "../../providers/host/session";
import { AutomationApiEngine } from "../../src/automation/cli/automation-api-engine";
import type { StackEngine } from "../../src/automation/engine";
import type { StackState } from "../../src/automation/stack-state";
import { dependencies } from "../../src/package";
import { resolveBinary } from "../../src/toolchain/resolve";
import { TestEngine } from "./test-engine";
import { recorded, THING_STUB, Thing, Things } from "./things";

/*
 * Pulumi's own Automation API is the oracle: what the engine in Go tells of an operation, does to the world and leaves in the
 * state has to be what it is there, resource by resource.
 */

interface Side {
  engine: StackEngine;
  things: Things;
}

let go: Side;
let stock: Side;

async function openSides(): Promise<() => Promise<void>> {
  const test = await TestEngine.open();
  go = test;
  const things = new Things();
  const settings = {
    ...test.settings,
    file: await resolveBinary("pulumi"),
    workDirectory: join(test.directory, "stock"),
    backendUrl: `file://${join(test.directory, "stock-state")}`,
  };
  const host = new ProviderHost(new Map([[THING_STUB, recorded(things)]]));
  const engine = await AutomationApiEngine.open(settings, { host, timeoutMs: 60_000 });
  stock = { engine, things };
  return async () => {
    await engine.close();
    await test.close();
  };
}

/** A step of a sequence: an operation, or something that befalls the world meanwhile. */
type Step = (side: Side, stack: string) => Promise<unknown>;

const things = (values: Record<string, string>) => () => {
  for (const [name, value] of Object.entries(values)) new Thing(name, { key: name, value });
};
const up =
  (values: Record<string, string>, refresh = false): Step =>
  ({ engine }, stack) =>
    engine.up(stack, things(values), { refresh });
const run =
  (program: () => void, refresh = false): Step =>
  ({ engine }, stack) =>
    engine.up(stack, program, { refresh });
const preview =
  (values: Record<string, string>, refresh = false): Step =>
  ({ engine }, stack) =>
    engine.preview(stack, things(values), { refresh });
const previewDestroy: Step = ({ engine }, stack) => engine.previewDestroy(stack);
const destroy: Step = ({ engine }, stack) => engine.destroy(stack);
const release: Step = ({ engine }, stack) => engine.destroy(stack, { release: true });
const changed =
  (changes: Record<string, string | undefined>): Step =>
  async ({ things: { live } }) => {
    for (const [key, value] of Object.entries(changes)) value === undefined ? live.delete(key) : live.set(key, value);
  };
const chain = (value: string) => () => {
  const first = new Thing("first", { key: "first", value });
  const second = new Thing("second", { key: "second", value: "1" }, { dependsOn: first });
  new Thing("third", { key: "third", value: "1" }, { dependsOn: second });
  new Thing("alone", { key: "alone", value: "1" });
};
const pair = (value: string) => () => {
  withParent(component("test:index:Pair", "pair"), () => new Thing("inner", { key: "inner", value }));
  new Thing("outer", { key: "outer", value });
};
/** Resources with options, before and after they are renamed, moved and changed. */
const optioned = () => {
  const group = component("test:index:Group", "group");
  new Thing("kept", { key: "kept", value: "1" }, { protect: true });
  new Thing("ignoring", { key: "ignoring", value: "1" }, { ignoreChanges: ["value"] });
  new Thing("secret", { key: "secret", value: "1" }, { additionalSecretOutputs: ["value"] });
  new Thing("below", { key: "below", value: "1" }, { parent: group, customTimeouts: { create: "1m", delete: "90s" } });
};
const renamed = (protect: boolean) => () => {
  const group = component("test:index:Group", "group");
  new Thing("renamed", { key: "kept", value: "2" }, { aliases: [{ name: "kept" }], protect });
  new Thing("ignoring", { key: "ignoring", value: "2" }, { ignoreChanges: ["value"] });
  new Thing("secret", { key: "other", value: "2" }, { deleteBeforeReplace: true });
  new Thing("above", { key: "below", value: "1" }, { aliases: [{ name: "below", parent: group }] });
};
const keyed = (key: string) => () => void new Thing("moved", { key, value: "1" });

export const SEQUENCES = {
  "agrees over a stack's life": [
    preview({ a: "1", b: "1" }),
    up({ a: "1", b: "terminal" }),
    up({ a: "2", b: "1" }),
    changed({ a: undefined }),
    up({ a: "2" }, true),
    destroy,
  ],
  "creates, changes, replaces and deletes": [
    preview({ a: "1" }),
    up({ a: "1", b: "1" }),
    up({ a: "1", b: "1" }),
    preview({ a: "2", c: "1" }),
    up({ a: "2", c: "1" }),
    up({ a: "afresh" }),
    previewDestroy,
    destroy,
    destroy,
  ],
  "finds drift, and repairs it when it is told to": [
    up({ a: "1", b: "1" }),
    changed({ a: "drifted", b: undefined }),
    up({ a: "1", b: "1" }),
    preview({ a: "1", b: "1" }, true),
    up({ a: "terminal", b: "terminal" }, true),
    up({ a: "1", b: "1" }),
    changed({ a: "drifted", b: undefined }),
    up({ a: "1", b: "1" }, true),
    release,
  ],
  "fails with some, goes on with the rest, and recovers": [
    up({ a: "1", b: "terminal", c: "retryable" }),
    up({ a: "bug", b: "1", c: "1" }),
    run(chain("1")),
    run(chain("terminal")),
    run(chain("2")),
    changed({ second: "in use" }),
    destroy,
    changed({ second: "1" }),
    destroy,
  ],
  "obeys the options of resources": [run(optioned), run(renamed(true)), run(() => {}), run(renamed(false)), destroy],
  "records what a create or an update has made that fails halfway": [
    up({ a: "half", b: "1" }),
    up({ a: "half", b: "1" }, true),
    up({ a: "2", b: "half" }),
    preview({ a: "2", b: "half" }),
    up({ a: "2" }),
    up({ a: "2", c: "half" }),
    destroy,
  ],
  "keeps what a program that throws has not registered": [
    run(pair("1")),
    run(() => {
      new Thing("inner", { key: "inner", value: "2" });
      throw new TerminalError("Invalid", "spec.size: 7 is too much");
    }),
    run(() => {
      throw null;
    }),
    run(pair("2")),
    run(keyed("one")),
    run(keyed("other")),
    run(keyed("other"), true),
    destroy,
  ],
} satisfies Record<string, readonly Step[]>;

/** A state without what differs from run to run, and without the places in a source file that only the SDK tells. */
function comparable(state: StackState | undefined) {
  const differing = ["created", "modified", "sourcePosition", "stackTrace", "ciphertext"];
  const text = JSON.stringify(state?.deployment.resources ?? [], (key, value) =>
    differing.includes(key) ? undefined : value,
  );
  // The id of a default provider.
  const resources = JSON.parse(text.replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, "<uuid>"));
  return sorted(resources as object[]);
}

function sorted(values: object[]): object[] {
  return values.sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
}

async function outcomeOf(step: Step, side: Side, stack: string) {
  const result = told(await step(side, stack));
  const state = comparable(await side.engine.exportStack(stack));
  return { result, state, live: Object.fromEntries(side.things.live) };
}

/**
 * A result without times, in an order of its own, as much is done side by side; and without `restDone`: the SDK's program does
 * not tell.
 */
function told(result: unknown): unknown {
  return JSON.parse(JSON.stringify(result ?? null), (key, value) => {
    if (["startTime", "endTime", "restDone"].includes(key)) return undefined;
    // The CLI says this of what is protected besides why.
    if (key === "failures") return sorted(value.filter((failure: Error) => failure.message !== "update failed"));
    return Array.isArray(value) && typeof value[0] === "object" ? sorted(value) : value;
  });
}

/** Runs sequences on both engines, each on a stack of its own. */
export function compareEngines(names: readonly (keyof typeof SEQUENCES)[]): void {
  describe("the engine in Go, beside Pulumi's Automation API,", () => {
    beforeAll(openSides);

    it("run the programs with the SDK that they are compared with", () => {
      expect(version).toBe(inject("sdk")?.version ?? dependencies["@pulumi/pulumi"]);
    });

    it.each(names)("%s", async (name) => {
      const stack = name.replaceAll(/\W+/g, "-");
      for (const side of [go, stock]) side.things.live.clear();
      for (const [index, step] of (SEQUENCES[name] as readonly Step[]).entries()) {
        const [ours, theirs] = [await outcomeOf(step, go, stack), await outcomeOf(step, stock, stack)];
        expect({ step: index + 1, ...ours }).toEqual({ step: index + 1, ...theirs });
      }
    });
  });
}
