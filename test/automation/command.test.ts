import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type CommandOptions, runCommand } from "../../src/automation/command";

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "kindstack-"));
});
afterEach(async () => {
  vi.useRealTimers();
  await rm(directory, { recursive: true });
});

/** Runs a shell script in the CLI's place; it may write to files in its directory. */
function run(script: string, options: Partial<CommandOptions> = {}) {
  const base = { cwd: directory, env: { PATH: process.env.PATH }, timeoutMs: 30_000 };
  return runCommand("sh", ["-c", script], { ...base, ...options });
}

const read = (file: string) => readFile(join(directory, file), "utf8");
const written = (file: string) => until(async () => (await read(file).catch(() => "")).endsWith("\n"));
const lives = (pid: string) => {
  try {
    process.kill(Number(pid), 0);
    return true;
  } catch {
    return false;
  }
};
const ended = (pid: string) => until(() => !lives(pid));

/** Fails by the test's own time-out; works with fake timers. */
async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await delay(20);
}

/** Counts the SIGINTs it gets and continues; `started` says that it listens. */
const STUBBORN = "trap 'echo SIGINT >> signals' INT; echo $$ > pid; echo > started; while :; do sleep 0.05; done";
/** Ends at the first SIGINT, as the CLI does once the current step is saved. */
const OBEDIENT = "trap 'echo saved; exit 7' INT; echo > started; while :; do sleep 0.05; done";
/** A grandchild that no signal but SIGKILL ends. */
const GRANDCHILD = "sh -c 'trap \"\" INT TERM HUP; echo $$ > grandchild; while :; do sleep 0.05; done' &";

describe("a command that ends by itself", () => {
  it("gives its exit code and both streams, and was not interrupted", async () => {
    const result = await run("echo out; echo err >&2; exit 3");
    expect(result).toEqual({ exitCode: 3, stdout: "out\n", stderr: "err\n" });
  });

  it("gives the signal that ended it", async () => {
    expect(await run("kill -KILL $$")).toMatchObject({ exitCode: -1, signal: "SIGKILL" });
  });

  it("runs in the directory and with the environment that it is given, and nothing else of ours", async () => {
    vi.stubEnv("PSQL_PASSWORD", "secret");
    const { stdout } = await run("pwd; env", { env: { PATH: process.env.PATH, MARK: "1" } });
    vi.unstubAllEnvs();
    expect(stdout).toContain(directory);
    expect(stdout).toContain("MARK=1");
    expect(stdout).not.toContain("secret");
  });

  it("reads nothing: a question would get no answer and hang", async () => {
    expect(await run("cat; echo end")).toMatchObject({ exitCode: 0, stdout: "end\n" });
  });

  it("keeps the end of a long output, where the errors are", async () => {
    const { stderr } = await run("{ head -c 600000 /dev/zero | tr '\\0' x; echo the end; } >&2");
    expect(stderr.length).toBeLessThan(300_000);
    expect(stderr.endsWith("xthe end\n")).toBe(true);
  });

  it("takes what it left running down with it, and does not wait for that", async () => {
    const result = await run(`${GRANDCHILD} while ! [ -s grandchild ]; do sleep 0.05; done`);
    expect(result).toEqual({ exitCode: 0, stdout: "", stderr: "" });
    await ended(await read("grandchild"));
  });

  it("is led by the pid that is told at its start, in a group of its own", async () => {
    const pids: number[] = [];
    const { stdout } = await run("echo $$; ps -o pgid= -p $$", { onStart: (pid) => pids.push(pid) });
    expect(stdout.split(/\s+/).filter(Boolean).map(Number)).toEqual([pids[0], pids[0]]);
  });
});

describe("a command that cannot be started", () => {
  it("is an error that names the file", async () => {
    const running = runCommand("/no/such/pulumi", [], { cwd: directory, env: {}, timeoutMs: 1_000 });
    await expect(running).rejects.toThrow("/no/such/pulumi");
  });
});

describe("a command that takes too long", () => {
  it("gets a SIGINT, and its own end counts", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const running = run(OBEDIENT, { timeoutMs: 30_000 });
    await written("started");
    vi.advanceTimersByTime(30_000);
    expect(await running).toEqual({ exitCode: 7, stdout: "saved\n", stderr: "", interrupted: "timeout" });
  });
});

describe("a command that is aborted", () => {
  it("gets a SIGINT and may finish", async () => {
    const abort = new AbortController();
    const running = run(OBEDIENT, { signal: abort.signal });
    await written("started");
    abort.abort();
    expect(await running).toMatchObject({ exitCode: 7, interrupted: "aborted" });
  });

  it("gets exactly one SIGINT, then is killed with its whole group, grandchildren included", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const abort = new AbortController();
    const running = run(`${GRANDCHILD} ${STUBBORN}`, { signal: abort.signal });
    await written("started");
    await written("grandchild");
    abort.abort();
    await written("signals");
    vi.advanceTimersByTime(9_000);
    expect(lives(await read("pid"))).toBe(true);
    vi.advanceTimersByTime(60_000); // the grace period, and the time-out, which must not interrupt it again
    expect(await running).toMatchObject({ exitCode: -1, interrupted: "aborted" });
    expect(await read("signals")).toBe("SIGINT\n");
    await ended(await read("pid"));
    await ended(await read("grandchild"));
  });

  it("is not started at all when the abort came before", async () => {
    const result = await run("echo > started", { signal: AbortSignal.abort() });
    expect(result).toMatchObject({ interrupted: "aborted" });
    await expect(read("started")).rejects.toThrow("ENOENT");
  });
});
