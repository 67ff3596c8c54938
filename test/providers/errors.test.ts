import fs from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { errorClassOf, errorReasonOf, TerminalError } from "../../providers/errors";

describe("the class and the reason of an error", () => {
  it("are its own where it was classified, whatever caused it", async () => {
    const cause = await fs.writeFile("/dev/full", "text").catch((error: unknown) => error);
    const error = new TerminalError("Invalid", "too long", { cause });
    expect([errorClassOf(error), errorReasonOf(error)]).toEqual(["terminal", "Invalid"]);
  });

  it.each(["/dev/full", "/nowhere/file", "/"])(
    "say that the system refused to write %s, which may heal",
    async (file) => {
      const error = await fs.writeFile(file, "text").catch((error: unknown) => error);
      expect([errorClassOf(error), errorReasonOf(error)]).toEqual(["retryable", "SystemError"]);
    },
  );

  it.each([new TypeError("x is undefined"), "text", undefined])("are a bug's for %s", (error) => {
    expect([errorClassOf(error), errorReasonOf(error)]).toEqual(["bug", "InternalError"]);
  });
});
