import { describe, expect, it } from "vitest";
import { isLooser, MODE_SPELLING, modeOfNamespace, strictest } from "../../../stacks/contract/mode";

describe("a mode", () => {
  it("is named without regard to case and blanks", () => {
    expect([" observe", "APPLY", "Obsreve", ""].map(MODE_SPELLING.read)).toEqual([
      "Observe",
      "Apply",
      undefined,
      undefined,
    ]);
  });

  it("holds where it is the strictest", () => {
    expect(strictest([undefined, "Apply", "Observe"])).toBe("Observe");
    expect(strictest([])).toBe("Apply");
    expect([isLooser("Apply", "Observe"), isLooser("Observe", "Observe")]).toEqual([true, false]);
  });

  it("of a namespace is told apart from what cannot be understood", () => {
    const of = (mode?: string) =>
      modeOfNamespace({
        metadata: { name: "a", ...(mode !== undefined && { annotations: { "kindstack.dev/mode": mode } }) },
      });
    expect([of(), of("observe")]).toEqual([{}, { mode: "Observe" }]);
    expect(of("x").problem).toBe(
      'annotation kindstack.dev/mode of the namespace a: "x" must be Apply or ProposeDestructive or Propose or Observe',
    );
  });
});
