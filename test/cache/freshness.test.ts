import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { LiveObject, ObjectMeta } from "../../providers/kubernetes/client";
import { isFresh, ProvenFreshness } from "../../src/cache/freshness";

function object(metadata: Partial<ObjectMeta> = {}): LiveObject {
  return {
    apiVersion: "demo.yash.com/v1",
    kind: "PostgresWriter",
    metadata: { name: "a", namespace: "default", uid: "first", resourceVersion: "1", generation: 1, ...metadata },
  };
}
const DELETED = { deletionTimestamp: "2026-11-21T00:00:00Z", generation: 2 };

it.each<[string, boolean, LiveObject, LiveObject | undefined]>([
  ["is as shown when nothing but its status has changed", true, object(), object({ resourceVersion: "2" })],
  ["is not when its spec has changed", false, object(), object({ generation: 2 })],
  ["is not when it is gone", false, object(), undefined],
  ["is not when another has its name", false, object(), object({ uid: "second" })],
  ["is not when it is being deleted by now", false, object(), object(DELETED)],
  ["that is being deleted is as shown whatever its spec", true, object(DELETED), object({ ...DELETED, generation: 3 })],
  ["that is being deleted is not when another has its name", false, object(DELETED), object({ uid: "second" })],
])("an object %s", (_, expected, shown, live) => {
  expect(isFresh(shown, live)).toBe(expected);
});

describe("a cache is known to be up to date", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["performance"] }));
  afterEach(() => void vi.useRealTimers());
  const cache = { resourceVersion: "9" };
  const open = () => {
    cache.resourceVersion = "9";
    return new ProvenFreshness(cache);
  };
  const holdsAt = (freshness: ProvenFreshness, ms: number) => {
    vi.advanceTimersByTime(ms - performance.now());
    return freshness.holds();
  };

  it("only once it shows a write that was sent not long ago", () => {
    const freshness = open();
    expect(holdsAt(freshness, 0)).toBe(false);
    freshness.wrote({ version: "10", sentAt: 0 });
    expect(holdsAt(freshness, 1)).toBe(false);
    cache.resourceVersion = "11";
    expect(holdsAt(freshness, 2)).toBe(true);
    expect(holdsAt(freshness, 5_000)).toBe(true);
    expect(holdsAt(freshness, 5_001)).toBe(false);
  });

  it("for longer after another write, also while the cache never shows the last one", () => {
    const freshness = open();
    for (let at = 0; at < 20_000; at += 1_000) {
      freshness.wrote({ version: String(100 + at), sentAt: at });
      cache.resourceVersion = String(99 + at); // all but this one
      if (at > 1_000) expect(holdsAt(freshness, at)).toBe(true);
    }
  });

  it("no more when it is filled again from an API server that is behind", () => {
    const freshness = open();
    freshness.wrote({ version: "10", sentAt: 0 });
    cache.resourceVersion = "10";
    expect(holdsAt(freshness, 1)).toBe(true);
    cache.resourceVersion = "9";
    expect(holdsAt(freshness, 1)).toBe(false);
  });

  it("not by what was sent before another replica may have written", () => {
    const freshness = open();
    freshness.wrote({ version: "10", sentAt: 0 });
    cache.resourceVersion = "10";
    vi.advanceTimersByTime(5);
    freshness.reset();
    expect(holdsAt(freshness, 6)).toBe(false);
    freshness.wrote({ version: "10", sentAt: 4 });
    expect(holdsAt(freshness, 6)).toBe(false);
    freshness.wrote({ version: "10", sentAt: 5 });
    expect(holdsAt(freshness, 6)).toBe(true);
  });
});
