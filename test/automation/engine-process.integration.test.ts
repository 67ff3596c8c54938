import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { hostname, userInfo } from "node:os";
import { join, resolve } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { EngineTiming } from "../../src/automation/engine-processes";
import { UrgentAbort } from "../../src/automation/interruption";
import { PROTOCOL } from "../../src/automation/rpc";
import { openEngine } from "../../src/automation/workspace";
import { resolveBinary } from "../../src/toolchain/resolve";
import { ENGINE_VERSION } from "../../src/toolchain/tools";
import { testContext } from "../providers/test-context";
import { helloOf, TestEngine, withProgram } from "./test-engine";

let engine: TestEngine;
beforeEach(async () => {
  engine = await TestEngine.open();
});
afterEach(() => engine.close());

/** An engine with another timing in place of the one that each test has. */
async function reopen(timing: EngineTiming): Promise<TestEngine> {
  await engine.close();
  return TestEngine.open(undefined, { timing });
}

const lives = (pid: number) => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};
const ended = (pid: number) => expect.poll(() => lives(pid)).toBe(false);

const SUCCEEDED = { summary: { result: "succeeded" } };
const KILLED = { summary: { result: "failed" }, failures: [{ reason: "Killed", errorClass: "retryable" }] };

/** Begins an update that waits in its provider. */
async function begin(stack: string, options: Parameters<TestEngine["up"]>[2] = {}) {
  const { entered, release } = engine.things.holdSlow();
  const updating = engine.up(stack, { a: "slow" }, options);
  await Promise.race([entered, updating]);
  return { updating, release };
}

describe("one process for many updates", () => {
  it("runs them at once, each with its own account", async () => {
    const stacks = Array.from({ length: 20 }, (_, index) => `stack-${index}`);
    const results = await Promise.all(stacks.map((stack) => engine.up(stack, { a: "1", b: stack })));
    for (const [index, { resources, summary }] of results.entries()) {
      expect(summary.resourceChanges).toEqual({ create: 2 });
      expect(resources.find(({ name }) => name === "b")?.outputs.value).toBe(`stack-${index}`);
    }
    expect(await engine.takeStarts()).toEqual([]);
  });

  it("saves the state of one at its end and of another after each step", async () => {
    const once = await begin("once", { savesOnce: true });
    const stepwise = await begin("stepwise");
    expect(await engine.engine.exportStack("once")).toBeUndefined();
    expect((await engine.checkpoint("stepwise")).pending).toHaveLength(1);
    for (const { updating, release } of [once, stepwise]) {
      release();
      expect(await updating).toMatchObject(SUCCEEDED);
    }
    expect((await engine.checkpoint("once")).resources.length).toBe(3);
  });

  it("removes a lock that has the process's own number and is a predecessor's", async () => {
    await engine.up("acme", { a: "1" });
    const locks = join(engine.directory, "state", ".pulumi", "locks", "organization", "kindstack", "acme");
    await mkdir(locks, { recursive: true });
    const lock = {
      pid: await engine.lastPid(),
      username: userInfo().username,
      hostname: hostname(),
      timestamp: new Date(),
      kindstack: { session: "its-own", until: new Date(0) },
    };
    await writeFile(join(locks, "74444608-23b4-486f-8630-2d111fa7ff08.json"), JSON.stringify(lock));
    expect(await engine.up("acme", { a: "2" })).toMatchObject(SUCCEEDED);
    expect(engine.warnings).toEqual(["removed the lock of a dead process"]);
  });
});

describe("a process that fails", () => {
  it("by standing still, is killed", async () => {
    engine = await reopen({ pingMs: 2_000 });
    const { updating, release } = await begin("acme");
    const pid = await engine.lastPid();
    process.kill(pid, "SIGSTOP");
    expect(await updating).toMatchObject(KILLED);
    release();
    expect(lives(pid)).toBe(false);
    expect(engine.errors).toContain("killing Pulumi's engine: it does not answer");
    expect(await engine.up("acme", { a: "slow" })).toMatchObject(SUCCEEDED);
  });

  it.each([
    ["rubbish", "head -c 100000 /dev/urandom; echo; sleep 60"],
    ["a message of another form", 'echo \'{"method":"event","params":{"id":"0"}}\'; sleep 60'],
  ])("by saying %s, is killed and not believed", async (_what, script) => {
    const file = join(engine.directory, "rubbish");
    await writeFile(file, `#!/bin/sh\necho '${helloOf()}'\nread -r _\n${script}\n`, { mode: 0o755 });
    const broken = withProgram(engine, file);
    await engine.up("acme", { a: "1" });
    const updates = [() => broken.up("acme", () => engine.declare("acme", { a: "2" })), () => broken.destroy("acme")];
    for (const update of updates) expect(await update()).toMatchObject(KILLED);
    expect([...engine.things.live]).toEqual([["acme/a", "1"]]);
  });
});

describe("what does not fit", () => {
  it.each([{ version: "3.0.0-1" }, { protocol: 99 }])(
    "is refused at the start, with what to do: %o",
    async (different) => {
      const file = join(engine.directory, "other");
      await writeFile(file, `#!/bin/sh\necho '${helloOf(different)}'\nread -r _\n`, { mode: 0o755 });
      const advice = `this Kindstack needs ${ENGINE_VERSION} with protocol ${PROTOCOL}: unset KINDSTACK_ENGINE`;
      const refusal = { reason: "Misconfigured", message: expect.stringContaining(advice) };
      await expect(openEngine({ ...engine.settings, file })).rejects.toMatchObject(refusal);
    },
  );

  it("is a passphrase that is not the one of the states, until its file is deleted, as the message says", async () => {
    await engine.up("acme", { a: "1" });
    const protection = { passphrase: { value: "another" }, keyService: undefined };
    const advice = /: incorrect passphrase: \/.*\/secrets\.json is of another one\. Use that one, or delete/;
    const refusal = { reason: "NoWorkspace", message: expect.stringMatching(advice) };
    await expect(openEngine({ ...engine.settings, protection })).rejects.toMatchObject(refusal);
    await rm(join(engine.settings.workDirectory, "secrets.json"));
    const opened = await openEngine({ ...engine.settings, protection });
    await opened.close();
  });
});

it("work whose Lease is lost ends with the process at once, and nothing of it is written after that", async () => {
  const lost = new AbortController();
  const fence = { check: () => lost.signal.throwIfAborted(), signal: lost.signal };
  const { entered, release } = engine.things.holdSlow();
  const context = testContext({ fence });
  const updating = engine.up("acme", { a: "slow", b: "1" }, { context });
  await Promise.race([entered, updating]);
  const pid = await engine.lastPid();
  lost.abort(new UrgentAbort("LeaseLost", "another one goes on", 0));
  await expect(updating).rejects.toMatchObject({ reason: "LeaseLost" });
  release();
  await ended(pid);
});

describe("a process's life", () => {
  it("ends when there was nothing to do for a while, and begins again", async () => {
    engine = await reopen({ idleMs: 50 });
    const update = () => engine.up("acme", { a: "1" });
    expect(await update()).toMatchObject(SUCCEEDED);
    const pid = await engine.lastPid();
    await ended(pid);
    expect(await update()).toMatchObject(SUCCEEDED);
    expect(await engine.lastPid()).not.toBe(pid);
    expect(engine.errors).toEqual([]);
  });

  const start = async (...args: string[]): Promise<ChildProcess> =>
    spawn(await resolveBinary("engine"), [`--secrets=${join(engine.directory, "secrets.json")}`, ...args], {
      env: { ...process.env, PULUMI_BACKEND_URL: engine.settings.backendUrl, PULUMI_CONFIG_PASSPHRASE: "p" },
      stdio: ["pipe", "ignore", "inherit"],
    });

  it("ends with its input, which ends with the operator", async () => {
    const server = await start();
    server.stdin?.end();
    expect(await once(server, "exit")).toEqual([0, null]);
  });

  it("ends when it is not told in time that it may continue", async () => {
    const server = await start("--ttl-ms=20000");
    server.stdin?.write('{"method":"allow","params":{"ms":20}}\n');
    expect(await once(server, "exit")).toEqual([3, null]);
  });
});

it("a process of the engine that ends while this process has no file descriptor left ends alone", () => {
  const script = `
      const fs = require("node:fs");
      const { EngineProcess } = require(${JSON.stringify(resolve("dist/src/automation/engine-process.js"))});
      const log = { warn() {}, error() {} };
      const engine = new EngineProcess({ file: "cat", args: [], environment: process.env, log }, () => {});
      const exhaust = () => {
        try {
          for (;;) fs.openSync("/dev/null");
        } catch {}
        setImmediate(exhaust).unref(); // what becomes free is taken
      };
      exhaust();
      process.kill(engine.pid, "SIGKILL");
      engine.ended.then(() => fs.writeSync(1, "ended"));`;
  const limited = ["-c", 'ulimit -n 256; exec "$0" -e "$1"', process.execPath, script];
  const { stdout, stderr } = spawnSync("/bin/sh", limited, { encoding: "utf8" });
  expect({ stdout, stderr }).toEqual({ stdout: "ended", stderr: "" });
});
