import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { completionsOf } from "../../src/cli/completion";
import { buildProgram, runProgram } from "../../src/cli/program";

async function scriptFor(shell: string): Promise<string> {
  let text = "";
  const write = vi.spyOn(process.stdout, "write").mockImplementation((chunk) => {
    text += String(chunk);
    return true;
  });
  expect(await runProgram(["completion", shell])).toBe(0);
  write.mockRestore();
  return text;
}

describe("completion", async () => {
  const completions = completionsOf(await buildProgram());

  it("knows every command, its options and the kinds", () => {
    const wordsOf = new Map(completions.map(({ path, words }) => [path, words]));
    expect(wordsOf.get("kindstack")).toEqual(expect.arrayContaining(["dev", "preview", "state", "--version"]));
    expect(wordsOf.get("kindstack dev stop")).toContain("--dir");
    expect(wordsOf.get("kindstack preview")).toEqual(expect.arrayContaining(["--fail-on", "markdown"]));
    expect(wordsOf.get("kindstack state export")).toEqual(
      expect.arrayContaining(["tenants", "tenants.multitenancy.codereliant.io", "--namespace"]),
    );
  });

  it("needs no quoting of any word", () => {
    const words = completions.flatMap(({ words }) => words);
    expect(words.filter((word) => !/^[\w.-]+$/.test(word))).toEqual([]);
  });

  it.each(["zsh", "fish"])("is offered for %s, with every command", async (shell) => {
    const script = await scriptFor(shell);
    for (const { path } of completions) expect(script).toContain(`"${path}"`);
  });
});

describe("completion in bash", () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "kindstack-completion-"));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it.each([
    [["st"], ["stack-name", "state", "status"]],
    [
      ["dev", "st"],
      ["status", "stop"],
    ],
    [
      ["state", "export", "ten"],
      ["tenants", "tenants.capsule.clastix.io", "tenants.multitenancy.codereliant.io"],
    ],
    [["preview", "--out"], ["--output"]],
    [["preview", "--output", "mark"], ["markdown"]],
    [["diff", "tenants", "--re"], ["--refresh"]],
    [["preview", "--filename", "./"], []],
  ])("completes %j", async (words, expected) => {
    const file = join(folder, "completion");
    writeFileSync(file, await scriptFor("bash"));
    const call = `. "$0"; COMP_WORDS=(kindstack "$@"); COMP_CWORD=$#; _kindstack; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const output = execFileSync("bash", ["-c", call, file, ...words], { encoding: "utf8" });
    expect(output.split("\n").filter(Boolean)).toEqual(expected);
  });
});
