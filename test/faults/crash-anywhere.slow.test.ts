import { createHash } from "node:crypto";
import fc from "fast-check";
import { expect, it } from "vitest";
import {
  type Backend,
  COUNTED,
  type Counted,
  type Crash,
  type Fault,
  PHASES,
  type Phase,
  type Sequence,
  useCrashHarness,
  VICTIMS,
} from "./crash";
import { explain } from "./explain";
import { ALL_SUBJECTS, type Subject } from "./scenario";

/*
 * All points at which a scenario of each kind can be cut off. In each round there is one for each kind and each thing that is
 * counted, in a random order that a seed fixes. All rounds would take days; as many as `CRASH_MINUTES` leaves time for are
 * tried, from round `CRASH_FROM` on; with `CRASH_ONLY` those whose name has this in it. `CRASH_BACKEND` is `file` or
 * `postgres`.
 */
const MINUTES = Number(process.env.CRASH_MINUTES ?? 30);
const FROM = Number(process.env.CRASH_FROM ?? 0);
const ONLY = process.env.CRASH_ONLY ?? "";
const BACKEND: Backend = process.env.CRASH_BACKEND === "postgres" ? "postgres" : "file";
const SEED = 20261121;
/** No kind writes more in a phase; the order must not depend on how much it was this time. */
const MOST: Record<Counted, number> = {
  "API writes": 80,
  "SQL statements": 300,
  "state writes": BACKEND === "postgres" ? 1_500 : 300,
};

/** What happens to those whose operator crashes, and in which phases it does. */
const MANNERS: Record<string, (crash: Crash) => Partial<Record<Phase, Fault>>> = {
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

const harness = useCrashHarness(BACKEND);

it("changes nothing of how a scenario ends, whatever is killed, and wherever", {
  timeout: (MINUTES + 30) * 60_000,
}, async () => {
  const sequences = new Map<Subject, Sequence>();
  for (const subject of ALL_SUBJECTS) sequences.set(subject, await harness.measure([subject]));
  const most = (subject: Subject, counted: Counted) =>
    Math.max(...PHASES.map((phase) => sequences.get(subject)?.counts[phase][counted] ?? 0));
  for (const subject of ALL_SUBJECTS) {
    for (const counted of COUNTED) expect(most(subject, counted)).toBeLessThanOrEqual(MOST[counted]);
  }
  const rounds = allRounds(({ subject, counted, after }) => after <= most(subject, counted));

  const end = Date.now() + MINUTES * 60_000;
  const failures: string[] = [];
  const scenarios: Record<string, { scenarios: number; crashes: number }> = {};
  for (const { round, subject, manner, ...crash } of rounds) {
    const name = `round ${round}: ${crash.victim} killed after ${crash.after} ${crash.counted}: a ${subject} ${manner}`;
    if (round < FROM || !name.includes(ONLY)) continue;
    if (Date.now() > end) break;
    const what = `${subject}, ${crash.counted}`;
    scenarios[what] ??= { scenarios: 0, crashes: 0 };
    scenarios[what].scenarios++;
    try {
      const reached = await harness.run([subject], sequences.get(subject) as Sequence, MANNERS[manner]?.(crash) ?? {});
      scenarios[what].crashes += Object.values(reached).flat().length;
      console.log(`${name}: ${JSON.stringify(reached)}`);
      harness.operator.takeLog();
    } catch (error) {
      failures.push(name);
      console.log(`FAILED ${name}: ${explain(error)}\n${harness.operator.takeLog()}`);
    }
  }
  console.log(`of ${rounds.length} scenarios, these ran:`, scenarios);
  expect(failures).toEqual([]);
});

/** All points that exist, in the order in which they are tried. */
function allRounds(exists: (point: Point) => boolean): (Point & { round: number })[] {
  const groups = ALL_SUBJECTS.flatMap((subject) =>
    COUNTED.map((counted) => {
      const points = Array.from({ length: MOST[counted] }, (_, index) => index + 1).flatMap((after) =>
        VICTIMS.flatMap((victim) =>
          Object.keys(MANNERS).map((manner): Point => ({ subject, counted, after, victim, manner })),
        ),
      );
      return shuffled(points, `${subject} ${counted}`).filter(exists);
    }),
  );
  const longest = Math.max(...groups.map(({ length }) => length));
  return Array.from({ length: longest }, (_, round) =>
    groups.flatMap((group) => group.slice(round, round + 1).map((point) => ({ ...point, round }))),
  ).flat();
}

/** Things of another name are in another order. */
function shuffled<T>(items: readonly T[], name: string): T[] {
  const seed = createHash("sha256").update(`${SEED} ${name}`).digest().readInt32BE();
  const [order = []] = fc.sample(fc.shuffledSubarray([...items.keys()], { minLength: items.length }), {
    seed,
    numRuns: 1,
  });
  return order.flatMap((index) => items[index] ?? []);
}
