import { describe, expect, it } from "vitest";
import { defineProvider } from "../../providers/dynamic";
import type { DynamicProvider, ProviderContext } from "../../providers/provider";
import { RETAINED } from "../../providers/resource-options";
import { testContext } from "./test-context";

const told: Record<string, ProviderContext | undefined> = {};

/** @param length how many arguments the method has before the context */
function telling<R>(method: string, length: number, result: R) {
  return async (...args: unknown[]) => {
    told[method] = args[length] as ProviderContext | undefined;
    return result;
  };
}

const plain: DynamicProvider = {
  check: telling("check", 2, { inputs: {}, failures: [] }),
  diff: telling("diff", 3, { changes: false }),
  create: telling("create", 1, { id: "a", outs: {} }),
  read: telling("read", 2, {}),
  update: telling("update", 3, { outs: {} }),
  delete: telling("delete", 2, undefined),
  release: telling("release", 2, undefined),
  observe: telling("observe", 2, null),
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
  it.each(calls)("is told the context of a call, which Pulumi's own script has none of: %s", async (method, call) => {
    const context = testContext();
    await call(context);
    expect(told[method]).toBe(context);
    await call();
    expect(told[method]).toBeUndefined();
  });
});
