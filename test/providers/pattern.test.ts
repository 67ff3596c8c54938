import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { matchesPattern } from "../../providers/pattern";

describe("a pattern", () => {
  it.each([
    ["a", "a"],
    ["*", ""],
    ["*", "any thing\n"],
    ["kube-*", "kube-"],
    ["kube-*", "kube-system"],
    ["*-system", "kube-system"],
    ["a*b*c", "abc"],
    ["a*b*c", "a-b-b-c-c"],
    ["a**b", "ab"],
    ["*aa", "aaa"],
  ])("%j means %j", (pattern, text) => {
    expect(matchesPattern(pattern, text)).toBe(true);
  });

  it.each([
    ["a", "b"],
    ["a", "aa"],
    ["", "a"],
    ["a.c", "abc"],
    ["kube-*", "kube"],
    ["a*a", "a"],
    ["ab*ba", "aba"],
    ["a*b*c", "acb"],
  ])("%j does not mean %j", (pattern, text) => {
    expect(matchesPattern(pattern, text)).toBe(false);
  });

  it("means what the same regular expression means", () => {
    const word = (alphabet: string) => fc.string({ unit: fc.constantFrom(...alphabet), maxLength: 8 });
    fc.assert(
      fc.property(word("ab*"), word("ab"), (pattern, text) => {
        expect(matchesPattern(pattern, text)).toBe(new RegExp(`^${pattern.replaceAll("*", ".*")}$`).test(text));
      }),
      { numRuns: 1_000 },
    );
  });

  it("takes no time for what would keep a regular expression busy for ever", () => {
    expect(matchesPattern(`${"*a".repeat(50)}*b`, "a".repeat(100_000))).toBe(false);
  });
});
