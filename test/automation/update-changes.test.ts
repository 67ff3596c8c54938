import { describe, expect, it } from "vitest";
import { countsOf } from "../../src/automation/update-changes";

describe("the counts of an update", () => {
  it("leave out what stayed the same", () => {
    expect(countsOf({ create: 2, same: 5, update: 1 })).toBe("2 create, 1 update");
    expect(countsOf({ same: 5 })).toBe("");
    expect(countsOf()).toBe("");
  });
});
