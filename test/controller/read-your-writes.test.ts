import { describe, expect, it } from "vitest";
import type { LiveObject } from "../../providers/kubernetes/client";
import { ReadYourWrites } from "../../src/controller/read-your-writes";

describe("a status", () => {
  const object = (status?: object) => ({ apiVersion: "v1", kind: "A", metadata: {}, status }) as unknown as LiveObject;

  it("is our own when it is what was written last", () => {
    const writes = new ReadYourWrites();
    void writes.status({ size: 1 }, () => new Promise(() => {})); // its event may come before the answer
    expect(writes.hasOwnStatus(object({ size: 1 }))).toBe(true);
    expect(writes.hasOwnStatus(object({ size: 2 }))).toBe(false);
  });

  it("that was wiped is not, though nothing was written yet", () => {
    expect(new ReadYourWrites().hasOwnStatus(object())).toBe(false);
  });
});
