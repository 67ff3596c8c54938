import pLimit from "p-limit";
import { expect, it } from "vitest";
import type { EngineUsage } from "../../src/automation/rpc";
import { TestEngine } from "./test-engine";

const UPDATES = Number(process.env.ENGINE_UPDATES ?? 10_000);
const STACKS = 200;
const AT_ONCE = 8;

/* Pulumi's engine keeps something of each operation for ever: with no idle minute, only successors can bound that. */
it(`the engine does not grow over ${UPDATES} updates without rest`, { timeout: 1_800_000 }, async () => {
  const engine = await TestEngine.open();
  const samples: EngineUsage[] = [];
  const sampling = setInterval(async () => samples.push(await engine.engine.processes.usage()), 250);
  try {
    const updates = Array.from({ length: UPDATES }, (_, index) => index);
    await pLimit(AT_ONCE).map(updates, async (index) => {
      const { failures } = await engine.up(`stack-${index % STACKS}`, { a: String(index) }, { savesOnce: true });
      expect(failures).toEqual([]);
    });
    const most = (what: keyof EngineUsage) => Math.max(...samples.map((usage) => usage[what]));
    console.log({
      memoryMiB: most("memoryBytes") / 2 ** 20,
      descriptors: most("descriptors"),
      ...engine.engine.processes.counts,
    });
    expect(engine.engine.processes.counts).toMatchObject({ operations: UPDATES, crashes: 0 });
    expect(engine.things.live.size).toBe(STACKS);
    expect(most("memoryBytes")).toBeLessThan(200 * 2 ** 20);
    expect(most("descriptors")).toBeLessThan(2_000);
  } finally {
    clearInterval(sampling);
    await engine.close();
  }
});
