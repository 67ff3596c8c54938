import fs from "node:fs";
import path from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { inspect } from "../../src/cli/inspection";
import { withStates } from "../../src/cli/open-stacks";
import { Progress } from "../../src/cli/progress";
import { eventually } from "../../src/testing/eventually";
import { captureOutput } from "../captured-output";
import { testDirectory } from "../directories";

let cache: string;
let output: { stderr: string };

/** Where the engine is looked for, another process makes it. */
beforeEach(() => {
  cache = testDirectory();
  fs.mkdirSync(path.join(cache, "engine", ".lock"), { recursive: true });
  const state = { PULUMI_BACKEND_URL: `file://${cache}`, PULUMI_CONFIG_PASSPHRASE: "the-passphrase" };
  const settings = { KINDSTACK_ENGINE: "", KINDSTACK_CACHE_DIR: cache, PATH: "", ...state };
  for (const [name, value] of Object.entries(settings)) vi.stubEnv(name, value);
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  output = captureOutput();
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

it.each([
  ["states", () => withStates(new Progress(), async () => expect.fail("it has no engine"))],
  ["an inspection", () => inspect("/v1/diff", { refresh: false }, {}, () => ({ kinds: [] }))],
])("leaves nothing that keeps the process alive when it is interrupted: %s", async (_, begin) => {
  const ended = begin().catch((error: Error) => error.message);
  await eventually(() => expect(output.stderr).toContain("waiting for another process"));
  expect(vi.getTimerCount()).toBe(1);
  process.listeners("SIGINT").at(-1)?.("SIGINT");

  expect(await ended).toBe("interrupted");
  expect(vi.getTimerCount()).toBe(0);
});
