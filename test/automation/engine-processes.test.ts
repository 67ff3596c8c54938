import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, expect, it, onTestFinished, vi } from "vitest";
import { EngineGoneError, type EngineProcess } from "../../src/automation/engine-process";
import { EngineProcesses } from "../../src/automation/engine-processes";
import { testDirectory } from "../directories";
import { helloOf } from "./test-engine";

let folder: string;
beforeEach(async () => {
  folder = testDirectory();
});

/** Processes that greet, and then do what a script says. */
async function open(script: readonly string[], idleMs = 100): Promise<EngineProcesses> {
  const file = join(folder, "engine");
  await writeFile(file, ["#!/bin/sh", `echo '${helloOf()}'`, "read -r _", ...script, ""].join("\n"), { mode: 0o755 });
  const log = { warn: () => {}, error: () => {} };
  return new EngineProcesses({ file, args: [], environment: process.env, log, idleMs });
}

/** An operation, to its end. */
function operate(one: EngineProcess): Promise<unknown> {
  const { ended } = one.operate("up", {}, { session: undefined as never, event: () => {}, outputs: async () => ({}) });
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

it("asks a process once for all who want to know at the same time what it uses", async () => {
  const usage = { memoryBytes: 1, descriptors: 1, goroutines: 1 };
  const answer = (id: number) => `read -r _; echo '${JSON.stringify({ id, result: usage })}'`;
  const processes = await open([`echo '{"id":1,"result":{}}'`, answer(2), answer(3), "read -r _"], 60_000);
  const process = await processes.use(async (one) => {
    await operate(one);
    return one;
  });
  const asked = vi.spyOn(process, "usage");
  expect(await Promise.all([processes.usage(), processes.usage()])).toEqual([usage, usage]);
  expect(asked).toHaveBeenCalledTimes(1);
  expect(await processes.usage()).toEqual(usage);
  expect(asked).toHaveBeenCalledTimes(2);
  await processes.close();
});
