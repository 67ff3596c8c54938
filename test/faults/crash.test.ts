import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { COUNTED, type Counted, type Course, PHASES, type Phase, useCrashHarness, VICTIMS } from "./crash";
import { ALL_KINDS } from "./life";

const SEED = 20261121;

const harness = useCrashHarness();
let course: Course;
beforeAll(async () => {
  course = await harness.measure(ALL_KINDS);
});

/** After which write, as a share of those that the phase has; the last may be one less the next time. */
const shares = fc.sample(fc.double({ min: 0, max: 0.8, noNaN: true }), { seed: SEED, numRuns: 9 });

function crashesOf(turn: number) {
  const crashes = PHASES.map((phase, index) => {
    const counted = COUNTED[(turn + index) % COUNTED.length] as Counted;
    const share = shares[turn * PHASES.length + index] as number;
    const after = 1 + Math.floor(share * course.counts[phase][counted]);
    return [phase, { crashes: [{ victim: VICTIMS[turn], counted, after }] }];
  });
  return Object.fromEntries(crashes) as Record<
    Phase,
    { crashes: [{ victim: "both"; counted: Counted; after: number }] }
  >;
}

describe("a SIGKILL after some write", () => {
  it.each([...VICTIMS.entries()])("%i: of %s changes nothing of how it ends", { timeout: 180_000 }, async (turn) => {
    const happenings = crashesOf(turn);
    const reached = await harness.live(ALL_KINDS, course, happenings);
    expect(
      PHASES.filter((phase) => reached[phase]?.length !== 1),
      `phases in which no crash came: ${JSON.stringify(happenings)}`,
    ).toEqual([]);
    console.log(JSON.stringify({ course: course.counts, happenings, reached }));
  });
});
