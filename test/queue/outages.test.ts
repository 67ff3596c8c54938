import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Item } from "../../src/queue/fair-queue";
import { Outages, type Retry } from "../../src/queue/fair-queue";

const item = (id: string): Item => ({ id });
const items = (count: number) => Array.from({ length: count }, (_, index) => item(`${index}`));

beforeEach(() => void vi.spyOn(Math, "random").mockReturnValue(0.5)); // no jitter
afterEach(() => void vi.restoreAllMocks());

it.each<[string, string[]]>([
  [
    "one for all that fail alike, later each time, and another one each time",
    ["a fails: a in 1 s", "b fails", "c fails", "a fails: b in 2 s", "b fails: c in 4 s", "c fails: a in 5 s"],
  ],
  [
    "two more after each success, so that all follow in a few rounds",
    [
      ...["a fails: a in 1 s", "b fails", "c fails", "d fails", "e fails"],
      ...["a succeeds: b in 0 s, c in 0 s", "b succeeds: d in 0 s, e in 0 s", "c succeeds"],
    ],
  ],
  [
    "one again, soon, when it was back for a moment only",
    [
      ...["a fails: a in 1 s", "b fails", "c fails", "a fails: b in 2 s"],
      ...["b succeeds: c in 0 s, a in 0 s", "c fails", "a fails: c in 1 s"],
    ],
  ],
  [
    "the next one, when one is gone or fails for another reason",
    ["a fails: a in 1 s", "b fails", "a leaves: b in 1 s", "b leaves", "b fails: b in 1 s"],
  ],
  [
    "others as before, when one that only waits is gone or succeeds",
    ["a fails: a in 1 s", "b fails", "c fails", "b leaves", "c succeeds", "a fails: a in 1 s"],
  ],
  [
    "one for each thing that is missing",
    ["a fails for x: a in 1 s", "b fails for y: b in 1 s", "c fails for x", "a fails for x: c in 2 s"],
  ],
  [
    "one of either, when what an item waits for changes",
    ["a fails for x: a in 1 s", "b fails for x", "a fails for y: b in 1 s, a in 1 s"],
  ],
  ["nothing, when one succeeds that never waited", ["a succeeds", "a leaves"]],
])("what is tried is %s", (_, steps) => {
  const outages = new Outages();
  const events = {
    fails: (one: Item, missing: string) => outages.failed(one, missing),
    succeeds: (one: Item) => outages.succeeded(one),
    leaves: (one: Item) => outages.abandoned(one),
  };
  for (const step of steps) {
    const [event = ""] = step.split(":");
    const [id = "", what, , missing = "table"] = event.split(" ");
    const retries: Retry<Item>[] = events[what as keyof typeof events](item(id), missing);
    const tried = retries.map(({ item, afterMs }) => `${item.id} in ${afterMs / 1_000} s`).join(", ");
    expect(tried === "" ? event : `${event}: ${tried}`).toBe(step);
  }
});

/** When what is tried while a table is missing for so long, by a queue that tries at once, and when the last one succeeds. */
function simulate(count: number, missingMs: number): { tries: number[]; doneAt: number } {
  const outages = new Outages();
  const due: { item: Item; at: number }[] = items(count).map((item) => ({ item, at: 0 }));
  const tries: number[] = [];
  let doneAt = 0;
  while (due.length > 0) {
    due.sort((a, b) => a.at - b.at);
    const [next] = due.splice(0, 1) as [{ item: Item; at: number }];
    const back = next.at >= missingMs;
    if (back) doneAt = next.at;
    else tries.push(next.at);
    const retries: Retry<Item>[] = back ? outages.succeeded(next.item) : outages.failed(next.item, "table students");
    for (const { item, afterMs } of retries) due.push({ item, at: next.at + afterMs });
  }
  return { tries, doneAt };
}

describe("objects whose table is missing for an hour", () => {
  it.each([300, 1])(
    "%i are tried every 5 s in the end, and all succeed at most that long after its return",
    (count) => {
      const hour = 3_600_000;
      const { tries, doneAt } = simulate(count, hour);
      const late = tries.filter((at) => at >= hour / 2);
      expect(late.length).toBeLessThanOrEqual(hour / 2 / 5_000 + 1);
      expect(doneAt).toBeGreaterThanOrEqual(hour);
      expect(doneAt).toBeLessThanOrEqual(hour + 5_000);
    },
  );

  it("are tried ten times a second at most, when each lacks another one", () => {
    const outages = new Outages();
    const objects = items(1_000);
    for (let round = 0; round < 10; round++) {
      for (const one of objects) outages.failed(one, `table ${one.id}`);
    }
    const retries = objects.flatMap((one) => outages.failed(one, `table ${one.id}`));
    expect(retries).toHaveLength(1_000);
    expect(new Set(retries.map(({ afterMs }) => afterMs))).toEqual(new Set([100_000]));
  });

  it("all succeed, however many they are", () => {
    const outages = new Outages();
    const waiting = new Set(items(1_000));
    const due = [...waiting].flatMap((one) => outages.failed(one, "table"));
    for (let retry = due.shift(); retry !== undefined; retry = due.shift()) {
      waiting.delete(retry.item);
      due.push(...outages.succeeded(retry.item));
    }
    expect(waiting.size).toBe(0);
  });
});
