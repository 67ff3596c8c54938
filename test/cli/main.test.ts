import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";

describe("a command", () => {
  it("ends as ever when what reads its output has ended before", () => {
    const { status, stderr } = spawnSync(
      "bash",
      ["-o", "pipefail", "-c", `"${process.execPath}" dist/src/cli/main.js --help | true`],
      { encoding: "utf8" },
    );
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  });
});
