import { afterEach, describe, expect, it, vi } from "vitest";
import { completionsOf } from "../../src/cli/completion";
import { buildProgram, runCommand } from "../../src/cli/program";

const TENANTS = ["tenants", "tenants.capsule.clastix.io", "tenants.multitenancy.codereliant.io"];
/** What tells the shell to complete names of files. */
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
    ["st", ["stack-name", "stacks", "state", "status"]],
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
    expect(await runCommand(["completion-server", "--", "kindstack", ...line.split(" ")])).toBe(0);
    expect(print.mock.calls.flat()).toEqual(expected);
  });
});
