import { setTimeout as delay } from "node:timers/promises";
import fc from "fast-check";
import { expect, it } from "vitest";
import { expectNoBugs } from "./generated";
import { Soak, type Step, stepsOf, type Usage } from "./soak";

/*
 * Random load with random faults for `SOAK_MINUTES`. Twelve times it is interrupted: when all has settled, what exists
 * has to be what the objects say. In the first third the operator is killed now and then; from then on it is one process,
 * of which memory and files must not become more.
 */
const MINUTES = Number(process.env.SOAK_MINUTES ?? 30);
const SEED = Number(process.env.SOAK_SEED ?? 20261121);
const ROUNDS = 12;
const ROUNDS_WITH_KILLS = 4;
const STEP_MS = 400;

it("neither leaks nor loses anything", { timeout: (MINUTES + 40) * 60_000 }, async () => {
  const soak = new Soak();
  const usages: Usage[] = [];
  try {
    await soak.start();
    for (let round = 0; round < ROUNDS; round++) {
      const steps = stepsUntil(Date.now() + (MINUTES * 60_000) / ROUNDS, round);
      for await (const step of steps) await soak.take(step);
      const usage = await soak.untilIdle();
      usages.push(usage);
      expectNoBugs(soak.takeLog());
      console.log(`round ${round + 1} of ${ROUNDS}: ${JSON.stringify(soak.takeDone())}, ${JSON.stringify(usage)}`);
    }
    const lone = usages.slice(ROUNDS_WITH_KILLS);
    // The first after the last kill is warming up.
    expectFlat("residentBytes", lone.slice(1, 4), lone.slice(-3), 1.25, 32 * 2 ** 20);
    expectFlat("heapBytes", lone.slice(1, 4), lone.slice(-3), 1.25, 16 * 2 ** 20);
    expectFlat("openFiles", lone.slice(1, 4), lone.slice(-3), 1, 16);
    await soak.removeAll();
  } catch (error) {
    console.log(soak.takeLog());
    throw error;
  } finally {
    await soak.stop();
  }
});

/** Random steps, one after the other, until a time has come; always the same for a round. */
async function* stepsUntil(end: number, round: number): AsyncGenerator<Step> {
  const mayKill = round < ROUNDS_WITH_KILLS;
  for (let batch = 0; ; batch++) {
    for (const step of fc.sample(stepsOf({ mayKill }), { seed: SEED + round * 100_000 + batch, numRuns: 20 })) {
      if (Date.now() > end) return;
      yield step;
      await delay(STEP_MS);
    }
  }
}

/** Compares the least of each window: what is in use for a moment does not count. */
function expectFlat(
  what: keyof Usage,
  early: readonly Usage[],
  late: readonly Usage[],
  factor: number,
  slack: number,
): void {
  const least = (usages: readonly Usage[]) => Math.min(...usages.map((usage) => usage[what]));
  expect(least(late), what).toBeLessThanOrEqual(least(early) * factor + slack);
}
