import { execFileSync } from "node:child_process";
import { resolve } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { completionsOf } from "../../src/cli/completion";
import { buildProgram, runProgram } from "../../src/cli/program";

const TENANTS = ["tenants", "tenants.capsule.clastix.io", "tenants.multitenancy.codereliant.io"];
const FILES = "__tabtab_complete_files__";

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

describe("what can follow a command", async () => {
  const program = await buildProgram();

  it("is known for every command, its options and the kinds", () => {
    expect(completionsOf(program, [])).toEqual(expect.arrayContaining(["dev", "preview", "state", "--version"]));
    expect(completionsOf(program, ["dev", "stop"])).toContain("--dir");
    expect(completionsOf(program, ["preview"])).toEqual(expect.arrayContaining(["--fail-on", "--output"]));
    expect(completionsOf(program, ["state", "export"])).toEqual(
      expect.arrayContaining(["tenants", "tenants.multitenancy.codereliant.io", "--namespace"]),
    );
  });

  it("is one of the values after an option that has some, and nothing after another that takes a value", () => {
    expect(completionsOf(program, ["preview", "--output"])).toEqual(["text", "markdown", "json"]);
    expect(completionsOf(program, ["preview", "-o"])).toEqual(["text", "markdown", "json"]);
    expect(completionsOf(program, ["preview", "--filename"])).toEqual([]);
  });

  it("does not include a command that people do not call", () => {
    expect(completionsOf(program, [])).not.toContain("completion-server");
    expect(program.helpInformation()).not.toContain("completion-server");
  });
});

describe("completion in a shell", () => {
  const CASES = [
    ["plug", ["plugins"]],
    ["plugins --out", ["--output"]],
    ["st", ["stack-name", "state", "status"]],
    ["dev st", ["status", "stop"]],
    ["state export ten", TENANTS],
    ["preview --out", ["--output"]],
    ["preview --output mark", ["markdown"]],
    ["diff tenants --re", ["--refresh"]],
    ["preview --filename ./", [FILES]],
  ] as const;

  it.each(
    ["bash", "zsh", "fish", "pwsh"].flatMap((shell) => CASES.map(([line, expected]) => ({ shell, line, expected }))),
  )("in $shell completes $line", async ({ shell, line, expected }) => {
    vi.stubEnv("SHELL", shell);
    vi.stubEnv("COMP_LINE", `kindstack ${line}`);
    vi.stubEnv("COMP_POINT", String(`kindstack ${line}`.length));
    vi.stubEnv("COMP_CWORD", String(line.split(" ").length));
    const print = vi.spyOn(console, "log").mockReturnValue();
    expect(await runProgram(["completion-server", "--", "kindstack", ...line.split(" ")])).toBe(0);
    expect(print.mock.calls.flat()).toEqual(expected);
  });

  it("works in a real bash, for a word and for a file", async () => {
    const write = vi.spyOn(process.stdout, "write").mockReturnValue(true);
    expect(await runProgram(["completion", "bash"])).toBe(0);
    const script = write.mock.calls.join("");
    write.mockRestore();
    const calls = CASES.slice(2, 3).concat(CASES.slice(-1));
    expect(calls).toHaveLength(2);
    for (const [line, expected] of calls) {
      const call = `kindstack() { "${process.execPath}" "${resolve("dist/src/cli/main.js")}" "$@"; }
        eval "$SCRIPT"; COMP_LINE="$0"; COMP_POINT=\${#COMP_LINE}; COMP_WORDS=($0); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1))
        _kindstack_completion; printf '%s\\n' "\${COMPREPLY[@]}"`;
      const output = execFileSync("bash", ["-c", call, `kindstack ${line}`], {
        encoding: "utf8",
        env: { ...process.env, SCRIPT: script },
      });
      // Without an answer, bash itself offers files.
      expect(output.split("\n").filter(Boolean)).toEqual(expected.filter((word) => word !== FILES));
    }
  });
});
