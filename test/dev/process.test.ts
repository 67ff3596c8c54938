import fs from "node:fs/promises";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { identify, isRunning, lastLines, programName, spawnDetached, stopProcess } from "../../src/dev/process";
import { eventually } from "../../src/testing/eventually";
import { testDirectory } from "../directories";

let root: string;

beforeEach(() => {
  root = testDirectory();
});

function start(script: string) {
  return spawnDetached("/bin/sh", ["-c", script], path.join(root, "log"), { cwd: root });
}

const logged = (text: string) =>
  eventually(async () => expect(await fs.readFile(path.join(root, "log"), "utf8")).toContain(text));

async function tellsItsProgram(): Promise<void> {
  const child = await start("exec sleep 60");

  await eventually(() => expect(programName(child.pid)).toBe("sleep"));
  await stopProcess(child, "SIGTERM", 5);
}

describe("the identity of a process", () => {
  it("is the same at every look", () => {
    const self = identify(process.pid);

    expect(self).toEqual(identify(process.pid));
    expect(self && isRunning(self)).toBe(true);
  });

  it("is not that of a later process with the same number", async () => {
    const child = await start("exec sleep 60");
    const earlier = { pid: child.pid, startedAt: "long ago" };

    await stopProcess(earlier, "SIGTERM", 1);

    expect(isRunning(earlier)).toBe(false);
    expect(isRunning(child)).toBe(true); // it was not stopped in the other one's place
    await stopProcess(child, "SIGTERM", 5);
  });

  it("ends with the process", async () => {
    const child = await start("exit 3");

    expect(await child.exited).toBe("exit code 3");
    expect(isRunning(child)).toBe(false);
    expect(identify(child.pid)).toBeUndefined();
  });
});

describe("a process where there is no /proc", () => {
  const { platform } = process;

  beforeEach(() => {
    Object.defineProperty(process, "platform", { value: "darwin" });
  });

  afterEach(() => {
    Object.defineProperty(process, "platform", { value: platform });
    vi.unstubAllEnvs();
  });

  it("is known again by a command in another time zone and language", () => {
    const self = identify(process.pid);
    vi.stubEnv("TZ", "Asia/Tokyo");
    vi.stubEnv("LC_ALL", "de_DE.UTF-8");

    expect(self?.startedAt).toMatch(/^\w+ \w+ +\d+ [\d:]+ \d{4}$/);
    expect(self && isRunning(self)).toBe(true);
  });

  it("has the name of its program", tellsItsProgram);
});

describe("stopping a process", () => {
  it("ends it by the signal that it understands", async () => {
    const child = await start("trap 'echo bye; exit 0' INT; echo up; while :; do sleep 0.05; done");
    await logged("up");

    await stopProcess(child, "SIGINT", 10);

    expect(await child.exited).toBe("exit code 0");
    await logged("bye");
  });

  it("ends it by force when it does not listen", async () => {
    const child = await start("trap '' TERM; echo up; while :; do sleep 0.05; done");
    await logged("up");

    await stopProcess(child, "SIGTERM", 0.2);

    expect(await child.exited).toBe("SIGKILL");
  });

  it("ends the children that it left behind", async () => {
    const child = await start("sleep 60 & echo $!; exit 0");
    await child.exited;
    await logged("\n");
    const pid = Number(lastLines(path.join(root, "log"), 1));
    const orphan = identify(pid);
    expect(orphan).toMatchObject({ pid });

    await stopProcess(child, "SIGTERM", 1);

    await eventually(() => expect(orphan && isRunning(orphan)).toBe(false));
  });
});

describe("starting a process", () => {
  it("keeps the log of the one before", async () => {
    await (await start("echo first")).exited;
    await (await start("echo second")).exited;

    expect(await fs.readFile(path.join(root, "log"), "utf8")).toBe("second\n");
    expect(await fs.readFile(path.join(root, "log.previous"), "utf8")).toBe("first\n");
  });

  it("fails when there is no such program", async () => {
    const started = spawnDetached(path.join(root, "nothing"), [], path.join(root, "log"), { cwd: root });

    await expect(started).rejects.toThrow(/nothing cannot be started: .*ENOENT/);
  });

  it("tells the name of the program that runs", tellsItsProgram);
});
