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

const USAGE = { memoryBytes: 1, descriptors: 1 };
const answer = (id: number, result: object = USAGE) => `echo '${JSON.stringify({ id, result })}'; read -r _`;

/** A process that has ended its first operation. */
const used = (processes: EngineProcesses) =>
  processes.use(async (one) => {
    await operate(one);
    return one;
  });

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
  const processes = await open([answer(1, {}), "sleep 0.5", answer(2)]);
  const process = await used(processes);
  expect(await processes.usage()).toEqual(USAGE);
  await process.ended;
});

it("asks a process once for all who want to know at the same time what it uses", async () => {
  const processes = await open([answer(1, {}), answer(2), answer(3)], 60_000);
  const asked = vi.spyOn(await used(processes), "usage");
  expect(await Promise.all([processes.usage(), processes.usage()])).toEqual([USAGE, USAGE]);
  expect(asked).toHaveBeenCalledTimes(1);
  expect(await processes.usage()).toEqual(USAGE);
  expect(asked).toHaveBeenCalledTimes(2);
  await processes.close();
});
