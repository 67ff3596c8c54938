import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { beforeEach, expect, it } from "vitest";
import { containerMemory } from "../../src/automation/engine-end";
import { testDirectory } from "../directories";

let root: string;
beforeEach(() => {
  root = testDirectory();
});

function write(files: Record<string, string>): void {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), text);
  }
}

it.each([
  [
    "version 2",
    { "memory.events": "low 0\nhigh 0\nmax 7\noom 3\noom_kill 2\noom_group_kill 0\n", "memory.max": "268435456\n" },
    { kills: 2, limitBytes: 268_435_456 },
  ],
  ["version 2, without a limit", { "memory.events": "oom 0\noom_kill 0\n", "memory.max": "max\n" }, { kills: 0 }],
  [
    "version 1",
    {
      "memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n",
      "memory/memory.limit_in_bytes": "1073741824\n",
    },
    { kills: 1, limitBytes: 1_073_741_824 },
  ],
  [
    "version 1, without a limit",
    { "memory/memory.oom_control": "oom_kill 0\n", "memory/memory.limit_in_bytes": "9223372036854771712\n" },
    { kills: 0 },
  ],
  ["no control groups", {}, {}],
])("reads the memory of a container with %s", (_what, files, expected) => {
  write(files);
  expect(containerMemory(root)).toEqual({ kills: undefined, limitBytes: undefined, ...expected });
});
