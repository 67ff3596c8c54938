import { execFileSync, spawnSync } from "node:child_process";
import path from "node:path";
import { describe, expect, it } from "vitest";

const MAIN = path.resolve(__dirname, "../../dist/src/cli/main.js");

describe("a command", () => {
  it("ends as ever when what reads its output has ended before", () => {
    const { status, stderr } = spawnSync(
      "bash",
      ["-o", "pipefail", "-c", `"${process.execPath}" "${MAIN}" --help | true`],
      { encoding: "utf8" },
    );
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  });

  it("ends as ever when what reads its messages has ended before", () => {
    const { status } = spawnSync("bash", [
      ...["-o", "pipefail", "-c"],
      `"${process.execPath}" "${MAIN}" --no-such-option 2>&1 | true`,
    ]);
    expect(status).toBe(2);
  });

  // Without an answer, bash itself offers files.
  it.each([
    ["st", ["stack-name", "stacks", "state", "status"]],
    ["preview --filename ./", []],
  ])("is completed in bash: %s", (line, expected) => {
    const script = execFileSync(process.execPath, [MAIN, "completion", "bash"], { encoding: "utf8" });
    const call = `kindstack() { "${process.execPath}" "${MAIN}" "$@"; }
      eval "$SCRIPT"; COMP_LINE="$0"; COMP_POINT=\${#COMP_LINE}; COMP_WORDS=($0); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1))
      _kindstack_completion; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const output = execFileSync("bash", ["-c", call, `kindstack ${line}`], {
      encoding: "utf8",
      env: { ...process.env, SCRIPT: script },
    });
    expect(output.split("\n").filter(Boolean)).toEqual(expected);
  });
});
