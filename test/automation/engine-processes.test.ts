import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, onTestFinished, vi } from "vitest";
import { EngineGoneError, type EngineProcess } from "../../src/automation/engine-process";
import { EngineProcesses } from "../../src/automation/engine-processes";
import { helloOf } from "./test-engine";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "kindstack-engine-processes-"));
});
afterEach(() => rm(folder, { recursive: true }));

/** Processes that greet, and then do what a script says. */
async function open(script: readonly string[]): Promise<EngineProcesses> {
  const file = join(folder, "engine");
  await writeFile(file, ["#!/bin/sh", `echo '${helloOf()}'`, "read -r _", ...script, ""].join("\n"), { mode: 0o755 });
  const log = { warn: () => {}, error: () => {} };
  return new EngineProcesses({ file, args: [], environment: process.env, log, idleMs: 100 });
}

/** An operation, to its end. */
function operate(one: EngineProcess): Promise<unknown> {
  const { ended } = one.operate("up", {}, { session: undefined as never, event: () => {} });
  return ended.catch((error: unknown) => error);
}

it("starts no process for a while when operations have ended two in a row", async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  onTestFinished(() => void vi.useRealTimers());
  const processes = await open(["exit 1"]);
  for (const _ of [1, 2]) expect(await processes.use(operate)).toBeInstanceOf(EngineGoneError);
  await expect(processes.use(operate)).rejects.toMatchObject({
    reason: "NoEngine",
    message: expect.stringContaining("ended 2 times in a row"),
  });
  expect(processes.counts.crashes).toBe(2);
});

it("ends a process without work also when it was asked what it uses just as its time was over", async () => {
  const usage = { memoryBytes: 1, descriptors: 1, goroutines: 1 };
  const processes = await open([
    `echo '{"id":1,"result":{}}'`,
    "read -r _",
    "sleep 0.5",
    `echo '${JSON.stringify({ id: 2, result: usage })}'`,
    "read -r _",
  ]);
  const process = await processes.use(async (one) => {
    await operate(one);
    return one;
  });
  expect(await processes.usage()).toEqual(usage);
  await process.ended;
});
