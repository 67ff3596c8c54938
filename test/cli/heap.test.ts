import { execFile } from "node:child_process";
import fs from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { collector, giveBackMemoryWhenIdle } from "../../src/cli/heap";

const LOOK_EVERY_MS = 2_000;
const MIB = 2 ** 20;

describe("giving memory back", () => {
  let busyMs = 0;
  let mib = 0;
  const collect = vi.fn<() => void>();
  let stop = () => {};
  beforeEach(() => {
    vi.useFakeTimers();
    [busyMs, mib] = [0, 100];
    collect.mockReset();
    vi.spyOn(process, "cpuUsage").mockImplementation(() => ({ user: busyMs * 1000, system: 0 }));
    const memory = process.memoryUsage();
    vi.spyOn(process, "memoryUsage").mockImplementation(() => ({ ...memory, heapTotal: mib * MIB }));
    stop = giveBackMemoryWhenIdle(collect);
  });
  afterEach(() => {
    stop();
    vi.useRealTimers();
    vi.restoreAllMocks();
  });

  it("collects when the process is idle", () => {
    vi.advanceTimersByTime(LOOK_EVERY_MS);
    expect(collect).toHaveBeenCalledOnce();
  });

  it("collects once, until there is more again", () => {
    collect.mockImplementation(() => {
      mib = 60;
    });
    vi.advanceTimersByTime(5 * LOOK_EVERY_MS);
    expect(collect).toHaveBeenCalledOnce();

    mib = 91;
    vi.advanceTimersByTime(LOOK_EVERY_MS);
    expect(collect).toHaveBeenCalledOnce();

    mib = 92;
    vi.advanceTimersByTime(LOOK_EVERY_MS);
    expect(collect).toHaveBeenCalledTimes(2);
  });

  it("leaves a busy process alone until it rests", () => {
    for (let look = 0; look < 5; look += 1) {
      busyMs += LOOK_EVERY_MS * 0.06;
      vi.advanceTimersByTime(LOOK_EVERY_MS);
    }
    expect(collect).not.toHaveBeenCalled();

    busyMs += LOOK_EVERY_MS * 0.04;
    vi.advanceTimersByTime(LOOK_EVERY_MS);
    expect(collect).toHaveBeenCalledOnce();
  });
});

describe("the heap of this process", () => {
  it("loses what no one uses any more when it is collected", async () => {
    const left = new WeakRef({});
    // What was looked at stays until the end of the turn.
    await delay(0);

    collector()();

    await delay(0);
    expect(isThere(left)).toBe(false);
  });

  it("gives the pages that it emptied back to the system", async () => {
    const given = await inProcess(`
      let kept = Array.from({ length: 1e6 }, (_, index) => ({ index, of: [index] }));
      const before = process.memoryUsage().rss;
      kept = undefined;
      await new Promise(setImmediate);
      collector()();
      print(before - process.memoryUsage().rss);
    `);
    expect(given).toBeGreaterThan(80 * MIB);
  });
});

it("the young generation grows, but no further than its limit", async () => {
  const largest = await inProcess(`limitYoungGeneration(); ${LARGEST_YOUNG}`);
  expect(largest).toBeGreaterThan(8 * MIB);
  // V8 doubles the generation, and under load counts a page of 1 MiB besides.
  expect(largest).toBeLessThan(64 * MIB);
});

const LARGEST_YOUNG = `
  let [kept, largest] = [[], 0];
  for (let index = 0; index < 6e5; index++) {
    kept.push({ index, of: [index, index + 1] });
    if (kept.length > 200_000) kept = kept.slice(100_000);
    if (index % 20_000 !== 0) continue;
    const { space_size: size } = v8.getHeapSpaceStatistics().find(({ space_name: name }) => name === "new_space");
    largest = Math.max(largest, size);
    await new Promise(setImmediate);
  }
  print(largest);
`;

/** What a program prints that uses the heap of a process of its own. */
async function inProcess(program: string): Promise<number> {
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), "kindstack-heap-"));
  try {
    await fs.copyFile("src/cli/heap.ts", path.join(folder, "heap.mts"));
    const file = path.join(folder, "program.mjs");
    const imports = 'import v8 from "node:v8";\nimport { collector, limitYoungGeneration } from "./heap.mts";';
    await fs.writeFile(file, `${imports}\nconst print = (value) => console.log(value);\n${program}`);
    return Number((await promisify(execFile)(process.execPath, [file])).stdout);
  } finally {
    await fs.rm(folder, { recursive: true });
  }
}

/** Looked at in a function of its own, so that nothing but the answer is left of the look. */
function isThere(left: WeakRef<object>): boolean {
  return left.deref() !== undefined;
}
