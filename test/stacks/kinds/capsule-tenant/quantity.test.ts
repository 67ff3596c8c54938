import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatQuantity } from "../../../../providers/kubernetes/quantity";
import { parseAmount, unitOf } from "../../../../stacks/kinds/capsule-tenant/quantity";

describe("an amount", () => {
  it.each<[string | number, bigint]>([
    ["0", 0n],
    [8, 8_000_000_000n],
    ["100m", 100_000_000n],
    ["1.5", 1_500_000_000n],
    [".5", 500_000_000n],
    ["2.", 2_000_000_000n],
    ["1Ki", 1024_000_000_000n],
    ["1.5Gi", 1610612736_000_000_000n],
    ["1e3", 1_000_000_000_000n],
    ["12E-1", 1_200_000_000n],
    ["1E", 10n ** 27n],
    ["3n", 3n],
    ["-2k", -2_000_000_000_000n],
  ])("%s is %i billionths", (quantity, amount) => {
    expect(parseAmount(quantity)).toBe(amount);
  });

  it("that is finer than a billionth is rounded up, as Kubernetes does", () => {
    expect(parseAmount("0.1n")).toBe(1n);
    expect(parseAmount("1.0000000001")).toBe(1_000_000_001n);
  });

  it.each(["", "ten", "1 Gi", "1gi", ".", "1.2.3", "Ki", "--1"])("is not what %o says", (text) => {
    expect(() => parseAmount(text)).toThrow(RangeError);
  });

  it.each<[string, string, string]>([
    ["16384Mi", "16Gi", "16Gi"],
    ["1000Mi", "16Gi", "1000Mi"],
    ["1000", "10", "1k"],
    ["2666m", "8", "2666m"],
    ["0.5Ki", "1Ki", "512"],
    ["0", "1Gi", "0"],
  ])("%s of a resource with %s is written %s", (quantity, whole, text) => {
    expect(formatQuantity(parseAmount(quantity), whole)).toBe(text);
  });

  it("is the same after it was written and read, however it is written", () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 10n ** 30n }), fc.constantFrom("1", "1Gi"), (amount, like) => {
        expect(parseAmount(formatQuantity(amount, like))).toBe(amount);
      }),
      { seed: 5 },
    );
  });

  it("is given out in thousandths of a processor, in Mi where the whole has such, and else in ones", () => {
    expect(unitOf("limits.cpu", "8")).toBe(parseAmount("1m"));
    expect(unitOf("requests.memory", "16Gi")).toBe(parseAmount("1Mi"));
    expect(unitOf("requests.memory", "1000Ki")).toBe(parseAmount("1"));
    expect(unitOf("pods", "10")).toBe(parseAmount("1"));
  });
});
