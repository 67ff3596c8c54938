import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { EngineGoneError, EngineProcess } from "../../src/automation/engine-process";
import { testDirectory } from "../directories";
import { helloOf } from "./test-engine";

let folder: string;
let logged: string[];
beforeEach(async () => {
  logged = [];
  folder = testDirectory();
});
afterEach(async () => {
  vi.unstubAllEnvs();
});

async function start(script: string, args: string[] = []): Promise<EngineProcess> {
  const file = join(folder, "engine");
  await writeFile(file, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  const note = (...line: unknown[]) => void logged.push(JSON.stringify(line));
  const log = { warn: note, error: note };
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

  it("that quotes the backend's URL at its start is told without what that must not show", async () => {
    vi.stubEnv("PULUMI_BACKEND_URL", "s3://b?accessKey=hunter2&session=hunter3");
    const engine = await start('echo "open bucket $PULUMI_BACKEND_URL" >&2; exit 1');
    const message = "Pulumi's engine did not start: open bucket s3://b?accessKey=***&session=***";
    await expect(engine.ready).rejects.toMatchObject({ message });
    expect(logged.join()).toContain("open bucket s3://b?accessKey=***&session=***");
    expect(logged.join()).not.toContain("hunter");
  });
});
