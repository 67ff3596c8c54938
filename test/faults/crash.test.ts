import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { COUNTED, type Counted, type Course, type Crash, PHASES, type Phase, useCrashHarness, VICTIMS } from "./crash";
import { ALL_SUBJECTS } from "./life";

const SEED = 20261121;

const harness = useCrashHarness();
let course: Course;
beforeAll(async () => {
  course = await harness.measure(ALL_SUBJECTS);
});

/** After which write, as a share of those that the phase has. */
const shares = fc.sample(fc.double({ min: 0, max: 0.8, noNaN: true }), { seed: SEED, numRuns: 9 });

function crashesOf(turn: number): Record<Phase, Crash> {
  const crashes = PHASES.map((phase, index) => {
    const counted = COUNTED[(turn + index) % COUNTED.length] as Counted;
    const share = shares[turn * PHASES.length + index] as number;
    const after = 1 + Math.floor(share * course.counts[phase][counted]);
    return [phase, { victim: VICTIMS[turn], counted, after }];
  });
  return Object.fromEntries(crashes) as Record<Phase, Crash>;
}

describe("a SIGKILL after some write", () => {
  it.each([...VICTIMS.entries()])("%i: of %s changes nothing of how it ends", { timeout: 180_000 }, async (turn) => {
    const crashes = crashesOf(turn);
    expect(await harness.live(ALL_SUBJECTS, course, crashes), JSON.stringify(crashes)).toEqual(PHASES);
  });

  it("leaves no lock, process, state or temporary file behind", () => harness.expectNothingLeft());
});
