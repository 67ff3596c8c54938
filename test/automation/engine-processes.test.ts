import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { EngineProcesses } from "../../src/automation/engine-processes";
import { helloOf } from "./test-engine";

it("ends a process without work also when it was asked what it uses just as its time was over", async () => {
  const folder = await mkdtemp(join(tmpdir(), "kindstack-engine-processes-"));
  const file = join(folder, "engine");
  const usage = { memoryBytes: 1, descriptors: 1, goroutines: 1 };
  const answers = [`{"id":1,"result":{}}`, JSON.stringify({ id: 2, result: usage })];
  const lines = [
    `echo '${helloOf()}'`,
    "read -r _",
    `echo '${answers[0]}'`,
    "read -r _",
    "sleep 0.5",
    `echo '${answers[1]}'`,
  ];
  await writeFile(file, `#!/bin/sh\n${lines.join("\n")}\nread -r _\n`, { mode: 0o755 });
  const log = { warn: () => {}, error: () => {} };
  const processes = new EngineProcesses({ file, args: [], environment: process.env, log, idleMs: 100 });
  try {
    const process = await processes.use(async (one) => {
      await one.operate("up", {}, { session: undefined as never, event: () => {} }).ended;
      return one;
    });
    expect(await processes.usage()).toEqual(usage);
    await process.ended;
  } finally {
    await processes.close();
    await rm(folder, { recursive: true });
  }
});
