import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { GroupBackoff } from "../../src/queue/group-backoff";

let tried: string[];
let backoff: GroupBackoff<string>;
const keys = Array.from({ length: 300 }, (_, index) => `object-${index}`);

beforeEach(() => {
  vi.useFakeTimers();
  vi.spyOn(Math, "random").mockReturnValue(0.5); // no jitter
  tried = [];
  backoff = new GroupBackoff<string>((key) => tried.push(key));
});
afterEach(() => {
  backoff.stop();
  vi.useRealTimers();
  vi.restoreAllMocks();
});

/** The keys that are tried within a time. */
function triedWithin(ms: number): string[] {
  tried = [];
  vi.advanceTimersByTime(ms);
  return tried;
}

describe("objects that fail for one reason", () => {
  beforeEach(() => {
    for (const key of keys) backoff.failed(key, "table missing");
  });

  it("are tried by a few of them, later each time, 40 s at most", () => {
    const gaps = [2, 4, 8, 16, 32, 40, 40];
    for (const seconds of gaps) {
      expect(triedWithin(seconds * 1_000 - 1)).toEqual([]);
      const probes = triedWithin(1);
      expect(probes).toHaveLength(8);
      for (const key of probes) backoff.failed(key, "table missing");
    }
  });

  it("are tried by others each time", () => {
    const first = triedWithin(2_000);
    for (const key of first) backoff.failed(key, "table missing");
    const second = triedWithin(4_000);
    expect(second.filter((key) => first.includes(key))).toEqual([]);
  });

  it("are all tried at once when one of them that was tried succeeds", () => {
    const [probe = "", ...others] = triedWithin(2_000);
    tried = [];
    backoff.succeeded(probe);
    expect(tried).toHaveLength(keys.length - 1);
    for (const key of others) backoff.succeeded(key);
    expect(tried).toHaveLength(keys.length - 1);
  });

  it("continue waiting when another one of them succeeds, whose spec was changed", () => {
    tried = [];
    backoff.succeeded("object-100");
    expect(tried).toEqual([]);
    expect(triedWithin(2_000)).toHaveLength(8);
  });

  it("wait longer when they fail again soon after they were all tried", () => {
    for (const seconds of [2, 4]) {
      const probes = triedWithin(seconds * 1_000);
      if (seconds === 2) for (const key of probes) backoff.failed(key, "table missing");
      else backoff.succeeded(probes[0] ?? "");
    }
    for (const key of keys) backoff.failed(key, "table missing");
    expect(triedWithin(7_999)).toEqual([]);
    expect(triedWithin(1)).toHaveLength(8);
  });

  it("are tried again when those that were tried have gone", () => {
    for (const key of triedWithin(2_000)) backoff.forget(key);
    expect(triedWithin(4_000)).toHaveLength(8);
  });
});

it("one object that fails waits for no one, and one that fails otherwise waits with those that do", () => {
  backoff.failed("a", "table missing");
  expect(triedWithin(2_000)).toEqual(["a"]);
  backoff.failed("a", "no connection");
  backoff.failed("b", "no connection");
  expect(triedWithin(2_000)).toEqual(["a", "b"]);
});
