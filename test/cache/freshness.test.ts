import { describe, expect, it } from "vitest";
import type { LiveObject, ObjectMeta } from "../../providers/kubernetes/client";
import { isFresh } from "../../src/cache/freshness";

function object(metadata: Partial<ObjectMeta> = {}): LiveObject {
  return {
    apiVersion: "demo.yash.com/v1",
    kind: "PostgresWriter",
    metadata: { name: "a", namespace: "default", uid: "first", resourceVersion: "1", generation: 1, ...metadata },
  };
}
const DELETED = { deletionTimestamp: "2026-11-21T00:00:00Z", generation: 2 };

describe("an object", () => {
  it.each<[string, boolean, LiveObject, LiveObject | undefined]>([
    ["is as shown when nothing but its status has changed", true, object(), object({ resourceVersion: "2" })],
    ["is not when its spec has changed", false, object(), object({ generation: 2 })],
    ["is not when it is gone", false, object(), undefined],
    ["is not when another has its name", false, object(), object({ uid: "second" })],
    ["is not when it is being deleted by now", false, object(), object(DELETED)],
    [
      "that is being deleted is as shown whatever its spec",
      true,
      object(DELETED),
      object({ ...DELETED, generation: 3 }),
    ],
    ["that is being deleted is not when another has its name", false, object(DELETED), object({ uid: "second" })],
  ])("%s", (_, expected, shown, live) => {
    expect(isFresh(shown, live)).toBe(expected);
  });
});
