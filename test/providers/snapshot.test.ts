import { describe, expect, it } from "vitest";
import { ProviderHost } from "../../providers/host/host";
import { currentSnapshot, readOnce, withinSnapshot } from "../../providers/snapshot";
import { THING_STUB, Things } from "../automation/things";

/** A thing in the world that is another at each read. */
function changing() {
  let reads = 0;
  return { read: () => readOnce("a", async () => ++reads), isRead: () => reads };
}

describe("a snapshot", () => {
  it("has each thing as it was when it was first read, also where two read it at the same time", async () => {
    const { read, isRead } = changing();
    const found = await withinSnapshot(new Map(), async () => [...(await Promise.all([read(), read()])), await read()]);
    expect(found).toEqual([1, 1, 1]);
    expect(isRead()).toBe(1);
  });

  it("tells things apart", async () => {
    const read = (key: string) => readOnce(key, async () => key);
    expect(await withinSnapshot(new Map(), () => Promise.all([read("a"), read("b")]))).toEqual(["a", "b"]);
  });

  it("is over with its work: what comes after reads again, as does what has none", async () => {
    const { read } = changing();
    await withinSnapshot(new Map(), read);
    expect(await withinSnapshot(new Map(), read)).toBe(2);
    expect([await read(), await read()]).toEqual([3, 4]);
  });

  it("is that of the work that has opened a session, wherever the engine calls from", async () => {
    const things = new Things();
    const { read } = changing();
    things.read = async (id) => ({ id, props: { key: id, value: String(await read()) } });
    const host = new ProviderHost(new Map([[THING_STUB, things]]));
    const request = { urn: "urn:pulumi:s::kindstack::test:Thing::a", id: "a", properties: { __provider: THING_STUB } };
    const preview = withinSnapshot(new Map(), () => host.openSession());
    const update = host.openSession();
    const valueIn = async (session: typeof preview) =>
      ((await session.call("Read", request)) as { properties: { value: string } }).properties.value;
    expect([await valueIn(preview), await valueIn(preview)]).toEqual(["1", "1"]);
    // The engine's process was started by a preview.
    expect(await withinSnapshot(new Map(), async () => [await valueIn(update), await valueIn(update)])).toEqual([
      "2",
      "3",
    ]);
    expect(currentSnapshot()).toBeUndefined();
  });
});
