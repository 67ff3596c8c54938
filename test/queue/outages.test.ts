import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Item } from "../../src/queue/fair-queue";
import { Outages, type Retry } from "../../src/queue/fair-queue";

const item = (id: string): Item => ({ id });
const items = (count: number) => Array.from({ length: count }, (_, index) => item(`${index}`));

beforeEach(() => void vi.spyOn(Math, "random").mockReturnValue(0.5)); // no jitter
afterEach(() => void vi.restoreAllMocks());

type Step = [
  call: "failed" | "succeeded" | "abandoned",
  id: string,
  expected: [id: string, afterMs: number][],
  table?: string,
];

it.each<[string, Step[]]>([
  [
    "one for all that fail alike, later each time, and another one each time",
    [
      ["failed", "a", [["a", 1_000]]],
      ["failed", "b", []],
      ["failed", "c", []],
      ["failed", "a", [["b", 2_000]]],
      ["failed", "b", [["c", 4_000]]],
      ["failed", "c", [["a", 5_000]]],
    ],
  ],
  [
    "two more after each success, so that all follow in a few rounds",
    [
      ["failed", "a", [["a", 1_000]]],
      ["failed", "b", []],
      ["failed", "c", []],
      ["failed", "d", []],
      ["failed", "e", []],
      ["succeeded", "a", [["b", 0], ["c", 0]]], // biome-ignore format: a step a line
      ["succeeded", "b", [["d", 0], ["e", 0]]], // biome-ignore format: a step a line
      ["succeeded", "c", []],
    ],
  ],
  [
    "one again, soon, when it was back for a moment only",
    [
      ["failed", "a", [["a", 1_000]]],
      ["failed", "b", []],
      ["failed", "c", []],
      ["failed", "a", [["b", 2_000]]],
      ["succeeded", "b", [["c", 0], ["a", 0]]], // biome-ignore format: a step a line
      ["failed", "c", []],
      ["failed", "a", [["c", 1_000]]],
    ],
  ],
  [
    "the next one, when one is gone or fails for another reason",
    [
      ["failed", "a", [["a", 1_000]]],
      ["failed", "b", []],
      ["abandoned", "a", [["b", 1_000]]],
      ["abandoned", "b", []],
      ["failed", "b", [["b", 1_000]]],
    ],
  ],
  [
    "others as before, when one that only waits is gone or succeeds",
    [
      ["failed", "a", [["a", 1_000]]],
      ["failed", "b", []],
      ["failed", "c", []],
      ["abandoned", "b", []],
      ["succeeded", "c", []],
      ["failed", "a", [["a", 1_000]]],
    ],
  ],
  [
    "one for each thing that is missing",
    [
      ["failed", "a", [["a", 1_000]], "table a"],
      ["failed", "b", [["b", 1_000]], "table b"],
      ["failed", "c", [], "table a"],
      ["failed", "a", [["c", 2_000]], "table a"],
    ],
  ],
  [
    "one of either, when what an item waits for changes",
    [
      ["failed", "a", [["a", 1_000]], "table a"],
      ["failed", "b", [], "table a"],
      ["failed", "a", [["b", 1_000], ["a", 1_000]], "database"], // biome-ignore format: a step a line
    ],
  ],
  ["nothing, when one succeeds that never waited", [["succeeded", "a", []], ["abandoned", "a", []]]], // biome-ignore format: a step a line
])("what is tried is %s", (_, steps) => {
  const outages = new Outages();
  for (const [call, id, expected, table = "table students"] of steps) {
    const retries = call === "failed" ? outages.failed(item(id), table) : outages[call](item(id));
    expect(retries.map(({ item, afterMs }) => [item.id, afterMs])).toEqual(expected);
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
