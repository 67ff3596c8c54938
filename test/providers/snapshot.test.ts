import { describe, expect, it } from "vitest";
import { ProviderHost } from "../../providers/host/session";
import { readOnce, type Snapshot } from "../../providers/snapshot";
import { THING_STUB, Things } from "../automation/things";

/** A thing in the world that is another at each read. */
function changing() {
  let reads = 0;
  return { read: (snapshot?: Snapshot) => readOnce(snapshot, "a", async () => ++reads), isRead: () => reads };
}

describe("a snapshot", () => {
  it("has each thing as it was when it was first read, also where two read it at the same time", async () => {
    const { read, isRead } = changing();
    const snapshot: Snapshot = new Map();
    expect([...(await Promise.all([read(snapshot), read(snapshot)])), await read(snapshot)]).toEqual([1, 1, 1]);
    expect(isRead()).toBe(1);
  });

  it("tells things apart", async () => {
    const snapshot: Snapshot = new Map();
    const read = (key: string) => readOnce(snapshot, key, async () => key);
    expect(await Promise.all([read("a"), read("b")])).toEqual(["a", "b"]);
  });

  it("is of its preview alone: others read again, as does what has none", async () => {
    const { read } = changing();
    await read(new Map());
    expect(await read(new Map())).toBe(2);
    expect([await read(), await read()]).toEqual([3, 4]);
  });

  it("is what the calls of a session are told", async () => {
    const things = new Things();
    const { read } = changing();
    things.read = async (id, _outs, context) => {
      return { id, props: { key: id, value: String(await read(context?.snapshot)) } };
    };
    const host = new ProviderHost(new Map([[THING_STUB, things]]));
    const request = { urn: "urn:pulumi:s::kindstack::test:Thing::a", id: "a", properties: { __provider: THING_STUB } };
    const preview = host.openSession({ snapshot: new Map() });
    const update = host.openSession({});
    const valueIn = async (session: typeof preview) =>
      ((await session.call("Read", request)) as { properties: { value: string } }).properties.value;
    expect([await valueIn(preview), await valueIn(preview)]).toEqual(["1", "1"]);
    expect([await valueIn(update), await valueIn(update)]).toEqual(["2", "3"]);
  });
});
