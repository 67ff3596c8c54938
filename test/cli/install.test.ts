import fs from "node:fs";
import path from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { runProgram } from "../../src/cli/program";

afterEach(() => vi.restoreAllMocks());

/** What a command prints, and its exit code. */
async function run(...words: string[]): Promise<{ exitCode: number; stdout: string; stderr: string }> {
  const printed = { stdout: "", stderr: "" };
  for (const stream of ["stdout", "stderr"] as const) {
    vi.spyOn(process[stream], "write").mockImplementation((text) => {
      printed[stream] += text;
      return true;
    });
  }
  return { exitCode: await runProgram(words), ...printed };
}

describe("kindstack install --print", () => {
  it("prints what deploy/install.yaml holds", { timeout: 20_000 }, async () => {
    const { exitCode, stdout } = await run("install", "--print");

    expect(exitCode).toBe(0);
    // When this fails: node dist/src/cli/main.js install --print > deploy/install.yaml
    expect(stdout).toBe(fs.readFileSync(path.resolve(__dirname, "../../deploy/install.yaml"), "utf8"));
  });

  it("obeys --set, more than once", { timeout: 20_000 }, async () => {
    const { stdout } = await run("install", "--print", "--set", "namespace=ops", "--set", "image=kindstack:dev");

    expect(stdout).toContain("namespace: ops\n");
    expect(stdout).toContain("image: kindstack:dev\n");
  });

  it("says which value it refuses, and prints nothing", async () => {
    expect(await run("install", "--print", "--set", "logLevel=loud")).toEqual({
      exitCode: 1,
      stdout: "",
      stderr: 'kindstack: kindstack:logLevel: "loud" must be one of trace, debug, info, warn, error\n',
    });
  });

  it.each([["install"], ["install", "--print", "--set", "namespace"], ["install", "--print", "--set", "install=true"]])(
    "refuses %j as wrong usage",
    async (...words) => {
      expect((await run(...words)).exitCode).toBe(2);
    },
  );

  it("describes the configuration in its help", async () => {
    expect((await run("install", "--help")).stdout).toMatch(/postgresTables +- +the tables that PostgresWriters may/);
  });
});

describe("kindstack stack-name", () => {
  it("prints the name of each object's own stack", async () => {
    const samples = ["tenant", "podset"].map((kind) => path.resolve(__dirname, "../../stacks", kind, "sample.yaml"));

    expect((await run("stack-name", ...samples)).stdout).toMatch(
      /^tenant\.tenant-sample-[0-9a-f]{19}\npodset\.default\.podset-sample-[0-9a-f]{19}\n$/,
    );
  });
});
