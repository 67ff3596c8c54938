import { beforeAll, describe, it } from "vitest";
import { COUNTED, type Course, PHASES, useCrashHarness, VICTIMS } from "./crash";
import { ALL_SUBJECTS } from "./life";

const harness = useCrashHarness();

/** More than any of the kinds writes in a phase; where it writes less, the rest of the points is left out. */
const MOST_WRITES = 40;

describe.each(ALL_SUBJECTS)("a %s", (subject) => {
  let course: Course;
  beforeAll(async () => {
    course = await harness.measure([subject]);
  });

  describe.each(COUNTED)("whose %s are cut off", (counted) => {
    describe.each(VICTIMS)("by a SIGKILL of %s", (victim) => {
      const points = Array.from({ length: MOST_WRITES }, (_, index) => index + 1);
      it.each(points)("after number %i ends as it would have otherwise", async (after) => {
        const phases = PHASES.filter((phase) => after <= course.counts[phase][counted]);
        if (phases.length === 0) return;
        const crashes = Object.fromEntries(phases.map((phase) => [phase, { victim, counted, after }]));
        await harness.live([subject], course, crashes);
      });
    });
  });
});

it("leaves no lock, process, state or temporary file behind", () => harness.expectNothingLeft());
