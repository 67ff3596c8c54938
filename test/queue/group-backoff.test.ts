import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { GroupBackoff } from "../../src/queue/group-backoff";
import type { Item } from "../../src/queue/item";

const item = (id: string): Item => ({ id });

let tried: Item[];
let backoff: GroupBackoff<Item>;
const items = Array.from({ length: 300 }, (_, index) => item(`object-${index}`));

beforeEach(() => {
  vi.useFakeTimers();
  vi.spyOn(Math, "random").mockReturnValue(0.5); // no jitter
  tried = [];
  backoff = new GroupBackoff<Item>((item) => tried.push(item));
});
afterEach(() => {
  backoff.stop();
  vi.useRealTimers();
  vi.restoreAllMocks();
});

/** What is tried within a time. */
function triedWithin(ms: number): Item[] {
  tried = [];
  vi.advanceTimersByTime(ms);
  return tried;
}

describe("objects that fail for one reason", () => {
  beforeEach(() => {
    for (const item of items) backoff.failed(item, "table missing");
  });

  it("are tried by a few of them, later each time, 40 s at most", () => {
    const gaps = [2, 4, 8, 16, 32, 40, 40];
    for (const seconds of gaps) {
      expect(triedWithin(seconds * 1_000 - 1)).toEqual([]);
      const probes = triedWithin(1);
      expect(probes).toHaveLength(8);
      for (const item of probes) backoff.failed(item, "table missing");
    }
  });

  it("are tried by others each time", () => {
    const first = triedWithin(2_000);
    for (const item of first) backoff.failed(item, "table missing");
    const second = triedWithin(4_000);
    expect(second.filter((item) => first.includes(item))).toEqual([]);
  });

  it("are all tried at once when one of them that was tried succeeds", () => {
    const [probe = item(""), ...others] = triedWithin(2_000);
    tried = [];
    backoff.succeeded(probe);
    expect(tried).toHaveLength(items.length - 1);
    for (const item of others) backoff.succeeded(item);
    expect(tried).toHaveLength(items.length - 1);
  });

  it("continue waiting when another one of them succeeds, whose spec was changed", () => {
    tried = [];
    backoff.succeeded(item("object-100"));
    expect(tried).toEqual([]);
    expect(triedWithin(2_000)).toHaveLength(8);
  });

  it("wait longer when they fail again soon after they were all tried", () => {
    for (const seconds of [2, 4]) {
      const probes = triedWithin(seconds * 1_000);
      if (seconds === 2) for (const item of probes) backoff.failed(item, "table missing");
      else backoff.succeeded(probes[0] ?? item(""));
    }
    for (const item of items) backoff.failed(item, "table missing");
    expect(triedWithin(7_999)).toEqual([]);
    expect(triedWithin(1)).toHaveLength(8);
  });

  it("are tried again when those that were tried have gone", () => {
    for (const item of triedWithin(2_000)) backoff.forget(item);
    expect(triedWithin(4_000)).toHaveLength(8);
  });
});

it("an object that was the only one and succeeded does not end the retries of those that fail after it", () => {
  const [only = item(""), ...others] = items;
  backoff.failed(only, "table missing");
  expect(triedWithin(2_000)).toEqual([only]);
  backoff.succeeded(only);
  vi.advanceTimersByTime(59_000);
  for (const item of others) backoff.failed(item, "table missing");
  for (const item of triedWithin(4_000)) backoff.failed(item, "table missing");
  const [probe = item("")] = triedWithin(8_000);
  tried = [];
  backoff.succeeded(probe);
  expect(tried).toHaveLength(others.length - 1);
});

it("one object that fails waits for no one, and one that fails otherwise waits with those that do", () => {
  backoff.failed(item("a"), "table missing");
  expect(triedWithin(2_000)).toEqual([item("a")]);
  backoff.failed(item("a"), "no connection");
  backoff.failed(item("b"), "no connection");
  expect(triedWithin(2_000)).toEqual([item("a"), item("b")]);
});
