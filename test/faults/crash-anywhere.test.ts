import fc from "fast-check";
import { expect, it } from "vitest";
import {
  COUNTED,
  type Counted,
  type Crash,
  type Happening,
  PHASES,
  type Phase,
  useCrashHarness,
  VICTIMS,
} from "./crash";
import { ALL_SUBJECTS, type Subject } from "./life";

/*
 * All points at which a life of each kind can be cut off, in a random order that a seed fixes. All of them would take
 * days; as many as `CRASH_MINUTES` leaves time for are tried, from number `CRASH_FROM` on. Any part of that order is a fair
 * sample of all.
 */
const MINUTES = Number(process.env.CRASH_MINUTES ?? 30);
const FROM = Number(process.env.CRASH_FROM ?? 0);
const SEED = 20261121;

/** What happens to those whose operator crashes, and in which phases it does. */
const MANNERS: Record<string, (crash: Crash) => Partial<Record<Phase, Happening>>> = {
  "created, changed and deleted": (crash) => ({
    create: { crashes: [crash] },
    change: { crashes: [crash] },
    delete: { crashes: [crash] },
  }),
  "hit again while that is mended": (crash) => ({
    create: { crashes: [crash, { ...crash, after: 2 }] },
    change: { crashes: [crash, { ...crash, after: 2 }] },
    delete: { crashes: [crash, { ...crash, after: 2 }] },
  }),
  "changed, and then deleted, before that is mended": (crash) => ({
    create: { crashes: [crash], hurried: true },
    change: { crashes: [crash], hurried: true },
    delete: {},
  }),
  "changed before that is mended": (crash) => ({ create: { crashes: [crash], hurried: true }, change: {}, delete: {} }),
  "deleted before that is mended": (crash) => ({ create: { crashes: [crash], hurried: true }, delete: {} }),
};

interface Point extends Crash {
  subject: Subject;
  manner: string;
}

const harness = useCrashHarness();

it("changes nothing of how a life ends, whatever it is that is killed, and wherever", {
  timeout: (MINUTES + 30) * 60_000,
}, async () => {
  const courses = new Map(await inTurn(ALL_SUBJECTS, async (subject) => [subject, await harness.measure([subject])]));
  const points = ALL_SUBJECTS.flatMap((subject) => {
    const counts = courses.get(subject)?.counts;
    const most = (counted: Counted) => Math.max(...PHASES.map((phase) => counts?.[phase][counted] ?? 0));
    return COUNTED.flatMap((counted) =>
      numbersTo(most(counted)).flatMap((after) =>
        VICTIMS.flatMap((victim) =>
          Object.keys(MANNERS).map((manner): Point => ({ subject, counted, after, victim, manner })),
        ),
      ),
    );
  });
  const end = Date.now() + MINUTES * 60_000;
  const failures: string[] = [];
  let lives = 0;
  const crashes: Record<string, number> = {};
  for (const point of shuffled(points).slice(FROM)) {
    if (Date.now() > end) break;
    const { subject, manner, ...crash } = point;
    const name = `number ${FROM + lives++}: ${crash.victim} killed after ${crash.after} ${crash.counted}: a ${subject} ${manner}`;
    const course = courses.get(subject);
    const happenings = MANNERS[manner]?.(crash);
    if (course === undefined || happenings === undefined) throw new Error(`${name} is not known`);
    try {
      const reached = await harness.live([subject], course, happenings);
      for (const phase of PHASES) {
        const what = `${subject}, ${crash.victim}, ${crash.counted}, ${manner}`;
        crashes[what] = (crashes[what] ?? 0) + (reached[phase]?.length ?? 0);
      }
      console.log(`${name}: ${JSON.stringify(reached)}`);
      harness.operator.takeLog();
    } catch (error) {
      failures.push(`${name}: ${(error as Error).message}`);
      console.log(`FAILED ${name}: ${(error as Error).stack}\n${harness.operator.takeLog()}`);
    }
  }
  console.log(
    `${lives} lives of ${points.length} were lived, with these crashes:\n${JSON.stringify(crashes, null, 1)}`,
  );
  expect(failures).toEqual([]);
});

async function inTurn<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (const item of items) results.push(await work(item));
  return results;
}

function numbersTo(last: number): number[] {
  return Array.from({ length: last }, (_, index) => index + 1);
}

function shuffled<T>(items: readonly T[]): T[] {
  const [order = []] = fc.sample(fc.shuffledSubarray([...items.keys()], { minLength: items.length }), {
    seed: SEED,
    numRuns: 1,
  });
  return order.flatMap((index) => items[index] ?? []);
}
