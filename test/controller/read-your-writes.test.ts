import { describe, expect, it } from "vitest";
import { ReadYourWrites } from "../../src/controller/own-writes";
import { liveObject } from "../objects";

describe("a status", () => {
  const object = (status?: object) => liveObject({ status });

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

describe("what was written", () => {
  const object = (resourceVersion: string, uid = "a") => liveObject({ metadata: { uid, resourceVersion } });
  const older = object("999");

  it("is kept until the cache shows it", () => {
    const writes = new ReadYourWrites();
    const written = writes.record(object("1000"));
    writes.shown(object("999"));
    expect(writes.latest(older)).toBe(written);
    writes.shown(object("1000"));
    expect(writes.latest(older)).toBe(older);
  });

  it("is not kept when a list shows what is newer", () => {
    const writes = new ReadYourWrites();
    writes.record(object("1000"));
    const newer = object("1001");
    expect(writes.latest(newer)).toBe(newer);
    writes.forgetShown([newer]);
    expect(writes.latest(older)).toBe(older);
  });

  it("is not taken for another object of that name", () => {
    const writes = new ReadYourWrites();
    writes.record(object("1000"));
    const successor = object("999", "another");
    expect(writes.latest(successor)).toBe(successor);
  });

  it("is not kept when its event came before the answer", () => {
    const writes = new ReadYourWrites();
    writes.shown(object("1000"));
    writes.record(object("1000"));
    expect(writes.latest(older)).toBe(older);
    const next = writes.record(object("1001"));
    expect(writes.latest(object("1000"))).toBe(next);
  });

  it("is kept again in a cluster whose versions were set back", () => {
    const writes = new ReadYourWrites();
    writes.shown(object("1000"));
    writes.shown(object("10"));
    const written = writes.record(object("11"));
    expect(writes.latest(object("10"))).toBe(written);
  });
});
