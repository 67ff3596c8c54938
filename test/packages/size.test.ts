import { expect, it } from "vitest";
import { isLarger } from "../../src/packages/size";

it.each<[string, unknown, number]>([
  ["a text", "x".repeat(100), 100],
  ["keys and values", { ["k".repeat(50)]: "v".repeat(26) }, 84],
  ["what is nested", [[["x".repeat(80)]]], 107],
  ["a map and a set", new Map([["key", new Set(["item"])]]), 23],
  ["bytes", new Uint8Array(92), 100],
])("measures %s", (_, value, size) => {
  expect(isLarger(value, size)).toBe(false);
  expect(isLarger(value, size - 1)).toBe(true);
});

it("takes what refers to itself for larger than anything", () => {
  const value: Record<string, unknown> = {};
  value.itself = value;
  expect(isLarger(value, 1e6)).toBe(true);
});
