import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { EngineGoneError, EngineProcess } from "../../src/automation/engine-process";
import { helloOf } from "./test-engine";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "kindstack-engine-process-"));
});
afterEach(() => rm(folder, { recursive: true }));

async function start(script: string, args: string[] = []): Promise<EngineProcess> {
  const file = join(folder, "engine");
  await writeFile(file, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  const log = { warn: () => {}, error: () => {} };
  return new EngineProcess({ file, args, environment: process.env, log }, () => {});
}

describe("a process of the engine", () => {
  it("answers nothing any more when it has ended", async () => {
    const engine = await start(`echo '${helloOf()}'; read -r _`);
    await engine.ready;
    await engine.stop();
    await expect(engine.usage()).rejects.toThrow(EngineGoneError);
    expect(engine.isIdle).toBe(true);
  });

  it("that the system refuses to start is waited for", async () => {
    const tooLong = "x".repeat(4 * 2 ** 20);
    await expect(start("true", [tooLong])).rejects.toMatchObject({ reason: "NoEngine", errorClass: "retryable" });
  });

  it.each([
    ["says why", "echo 'no such backend' >&2; exit 1", "Pulumi's engine did not start: no such backend"],
    ["says nothing", "exit 3", "Pulumi's engine did not start: exit code 3"],
    ["is killed", "kill -TERM $$", "Pulumi's engine was killed by SIGTERM"],
  ])("that ends at its start and %s is waited for", async (_, script, message) => {
    const engine = await start(script);
    await expect(engine.ready).rejects.toMatchObject({ reason: "NoEngine", errorClass: "retryable", message });
  });
});
