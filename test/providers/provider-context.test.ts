import { describe, expect, it } from "vitest";
import { defineProvider } from "../../providers/dynamic";
import type { DynamicProvider, ProviderContext } from "../../providers/provider";
import { RETAINED } from "../../providers/resource-options";
import { testContext } from "./test-context";

const told: Record<string, ProviderContext | undefined> = {};

function telling<R>(method: string, result: R) {
  return async (...args: unknown[]) => {
    told[method] = args[length(method)] as ProviderContext | undefined;
    return result;
  };
}

/** How many arguments a method has before the context. */
function length(method: string): number {
  return { create: 1, diff: 3, update: 3 }[method] ?? 2;
}

const plain: DynamicProvider = {
  check: telling("check", { inputs: {}, failures: [] }),
  diff: telling("diff", { changes: false }),
  create: telling("create", { id: "a", outs: {} }),
  read: telling("read", {}),
  update: telling("update", { outs: {} }),
  delete: telling("delete", undefined),
  release: telling("release", undefined),
  observe: telling("observe", null),
  identify: () => "a",
};
const { provider } = defineProvider("test", plain);

const calls: [keyof DynamicProvider, (context?: ProviderContext) => Promise<unknown> | undefined][] = [
  ["check", (context) => provider.check({}, {}, context)],
  ["diff", (context) => provider.diff("a", {}, {}, context)],
  ["create", (context) => provider.create({}, context)],
  ["read", (context) => provider.read("a", {}, context)],
  ["update", (context) => provider.update("a", {}, {}, context)],
  ["delete", (context) => provider.delete("a", {}, context)],
  ["release", (context) => provider.release("a", {}, context)],
  ["release", (context) => provider.delete("a", { [RETAINED]: true }, context)],
  ["observe", (context) => provider.observe?.({}, {}, context)],
];

describe("a defined provider", () => {
  it.each(calls)("is told the context of a call: %s", async (method, call) => {
    const context = testContext();
    await call(context);
    expect(told[method]).toBe(context);
  });

  it.each(calls)("is called without a context by Pulumi's own script: %s", async (method, call) => {
    await call();
    expect(told[method]).toBeUndefined();
  });
});
