import os from "node:os";
import path from "node:path";
import { Command } from "commander";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { previewCommand } from "../../src/cli/preview";
import { buildProgram, runCommand } from "../../src/cli/program";
import { packageVersion } from "../../src/package";
import { captureOutput } from "../captured-output";

const { columns } = process.stdout;
let output: { stdout: string; stderr: string };

beforeEach(() => {
  output = captureOutput();
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  process.stdout.columns = columns;
});

const nowhere = path.join(os.tmpdir(), "kindstack-there-is-nothing");

/** The words of each command, subcommands included: `kindstack dev stop`. */
function commandsOf(command: Command, parents = ""): string[] {
  const words = `${parents}${command.name()}`;
  return [words, ...command.commands.flatMap((child) => commandsOf(child, `${words} `))];
}

describe("the command line", async () => {
  const program = await buildProgram();
  it.each([[["--help"]], [["dev", "--help"]], [["dev", "stop", "--help"]], [["run", "--help"]], [["crds", "--help"]]])(
    "explains itself: %j",
    async (words) => {
      expect(await runCommand(words)).toBe(0);
      expect(output.stdout).toContain("Usage: kindstack");
    },
  );

  it.each(commandsOf(program))("has an example in the help of: %s", async (words) => {
    expect(await runCommand([...words.split(" ").slice(1), "--help"])).toBe(0);
    expect(output.stdout).toMatch(/\nExamples?:\n {2}\S/);
    const examples = /\nExamples?:\n((?: {2}\S.*\n?)+)/.exec(output.stdout)?.[1] ?? "";
    expect(examples).toContain(words);
  });

  it.each([60, 80, 100, 140].flatMap((width) => commandsOf(program).map((words) => [width, words] as const)))(
    "needs at most %d columns, but for commands to copy, for the help of: %s",
    async (width, words) => {
      process.stdout.columns = width;
      expect(await runCommand([...words.split(" ").slice(1), "--help"])).toBe(0);
      const lines = output.stdout.split("\n").filter((line) => line.length > width);
      expect(
        lines.filter((line) => !/^ {2}(kindstack|npx|kubectl|helm|\.) /.test(line) && line.trim().includes(" ")),
      ).toEqual([]);
    },
  );

  it("tells its version", async () => {
    expect(await runCommand(["--version"])).toBe(0);
    expect(output.stdout).toBe(`${packageVersion}\n`);
  });

  it.each([
    [["nonsense"], "unknown command"],
    [["dev", "nonsense"], "too many arguments"],
    [["dev", "--nonsense"], "unknown option '--nonsense'"],
    [["dev", "stop", "--detach"], "unknown option '--detach'"],
    [["dev", "--dir"], "argument missing"],
    [["preview"], "name files with --filename, a command that prints manifests with --render, or --fleet"],
    [["preview", "-f", "-", "--prune-against", "main"], "Give the command that writes it with --render"],
    [["preview", "-f", "a", "--prune-against", "main", "--prune-selector", "a=b"], "cannot be used with option"],
    [["preview", "-f", "a", "--prune-selector", " "], "must name labels"],
    [["preview", "-f", "a.yaml", "--fail-on", "nonsense"], "allowed: create, "],
    [["preview", "-f", "a.yaml", "--concurrency", "0"], "at least 1"],
    [["preview", "-f", "a.yaml", "--output", "xml"], "Allowed choices are text, markdown, json"],
    [["preview", "-f", "a.yaml", "--server", "http://host"], "it must be an https:// address without a path"],
    [["history", "tenants", "a", "--server", "https://host/prefix"], "it must be an https:// address without a path"],
    [["run", "--admission-url", "https://host/prefix"], "it must be an https:// address without a path"],
    [["run", "--shards", "0"], "must be a whole number from 1 to 999"],
    [["diff"], "name either a kind or --all"],
    [["diff", "tenants", "--all"], "name either a kind or --all"],
    [["approve"], "name one of: an object (kind and name), --group or --report"],
    [["approve", "--group", "a", "--report", "a.json"], "name one of"],
    [["reject", "tenants"], "name one of: an object (kind and name) or --group"],
    [["history", "nonsense", "a"], "there is no kind nonsense; it can be one of tenants."],
    [["completion", "tcsh"], "Allowed choices are bash, fish, pwsh, zsh"],
    [[], "Usage: kindstack"],
  ])("ends with 2 after wrong usage: %j", async (words, said) => {
    expect(await runCommand(words)).toBe(2);
    expect(output.stderr).toContain(said);
  });

  it("takes the operations of each --fail-on", () => {
    const command = previewCommand();
    command.parseOptions(["--fail-on", "delete,create", "--fail-on", "replace"]);
    expect(command.opts().failOn).toEqual(["delete", "create", "replace"]);
  });

  it.each(["http://10.0.0.5:8080/metrics", "http://127.0.0.1.example.com/metrics"])(
    "sends a token to %s only over TLS",
    async (url) => {
      expect(await runCommand(["status", "--metrics-url", url, "--metrics-token-file", "t"])).toBe(1);
      expect(output.stderr).toBe(
        `kindstack: --metrics-url ${url} would be sent the token in clear text: use https://, or forward the port to this machine\n`,
      );
    },
  );

  it("ends with 0 when nothing is left to be stopped", async () => {
    expect(await runCommand(["dev", "stop", "--dir", nowhere])).toBe(0);
    expect(output.stdout).toBe(`nothing runs in ${nowhere}\n`);
  });

  it.each([[["dev", "status", "--dir", nowhere]], [["dev", "--dir", nowhere, "status"]]])(
    "ends with 1 when nothing runs: %j",
    async (words) => {
      expect(await runCommand(words)).toBe(1);
      expect(output.stdout).toBe(`stopped: ${nowhere}\n`);
    },
  );
});

describe("a command that fails", () => {
  const failing = () =>
    new Command("kindstack").exitOverride().action(() => {
      throw new Error("the disk is full");
    });

  it("ends with 1 and one line that says why", async () => {
    expect(await runCommand([], failing())).toBe(1);
    expect(output.stderr).toBe("kindstack: the disk is full\n");
  });

  it("says it without effect on the terminal, whatever it quotes", async () => {
    const hostile = new Command("kindstack").exitOverride().action(() => {
      throw new Error("a.yaml: kind \u001b]8;;http://x\u0007\u202eTenant\nb.yaml: \u009b2J");
    });
    vi.stubEnv("KINDSTACK_DEBUG", "1");

    expect(await runCommand([], hostile)).toBe(1);

    expect(output.stderr).toMatch(
      /^kindstack: a\.yaml: kind \\u001b]8;;http:\/\/x\\u0007\\u202eTenant\nb\.yaml: \\u009b2J\n/,
    );
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
    expect(output.stderr).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e]/);
  });

  it("shows where it failed when asked to", async () => {
    vi.stubEnv("KINDSTACK_DEBUG", "1");

    await runCommand([], failing());

    expect(output.stderr).toContain("    at ");
  });
});
