import { describe, expect, it } from "vitest";
import type { LeaseRecord } from "../../src/sharding/lease-store";
import { type ReplicaState, step } from "../../src/sharding/step";

const SHARING = { shards: 3, timing: { leaseDurationMs: 15_000 } };
const NOW = 100_000;

const lease = (name: string, changes: Partial<LeaseRecord> = {}): LeaseRecord => ({
  name,
  uid: `uid-${name}`,
  version: "1",
  holder: name,
  transitions: 0,
  shards: 3,
  ...changes,
});
const session = (name: string, changes: Partial<LeaseRecord> = {}) => lease(`kindstack-replica-${name}`, changes);
const shard = (number: number, holder: string | undefined) =>
  lease(`kindstack-shard-${number}`, { holder: holder && `kindstack-replica-${holder}`, shards: undefined });

const OWN = session("a");
const state = (changes: Partial<ReplicaState> = {}): ReplicaState => ({
  held: new Map(),
  yielding: new Map(),
  seen: new Map(),
  standsBack: false,
  leaving: false,
  ...changes,
});
const holding = (...numbers: number[]) => new Map(numbers.map((number) => [number, shard(number, "a")]));
/** What a replica does, with what: the shards' numbers, or the sessions' names. */
const actionsOf = (before: ReplicaState, leases: LeaseRecord[], own = OWN) =>
  step(before, own, [own, ...leases], NOW, SHARING).actions.map((action) => {
    if (action.type === "expire") return `expire ${action.session.name.split("-").at(-1)}`;
    if (action.type === "acquire") {
      return `acquire ${action.count} of ${action.candidates.map(({ shard }) => shard).join()}`;
    }
    return "shard" in action ? `${action.type} ${action.shard}` : action.type;
  });

describe("a step of a replica", () => {
  it.each<[string, ReplicaState, LeaseRecord[], string[], LeaseRecord?]>([
    ["takes what is free", state(), [shard(1, undefined)], ["acquire 3 of 0,1,2"]],
    [
      "takes no more than its share, and leaves what a living one holds",
      state(),
      [session("b"), shard(0, "b")],
      ["acquire 1 of 1,2"],
    ],
    [
      "gives back what is more than its share",
      state({ held: holding(0, 1, 2) }),
      [0, 1, 2].map((n) => shard(n, "a")).concat(session("b")),
      ["hold 0", "hold 1", "hold 2", "yield 2"],
    ],
    ["notes a shard that it took without hearing so", state({ leaving: true }), [shard(2, "a")], ["hold 2"]],
    [
      "notes a shard that it gave back without hearing so",
      state({ leaving: true, held: holding(2), yielding: new Map([[2, true]]) }),
      [shard(2, undefined)],
      ["released 2"],
    ],
    ["loses all when one was taken away", state({ held: holding(0, 1) }), [shard(0, "a"), shard(1, "b")], ["lose"]],
    ["takes nothing when it leaves", state({ leaving: true }), [shard(0, undefined)], []],
    [
      "stands back from replicas with another number of shards that hold something",
      state(),
      [session("z", { shards: 4 }), shard(0, "z")],
      ["standBack"],
    ],
    [
      "takes nothing before its number of shards has been published",
      state({ standsBack: true }),
      [],
      [],
      session("a", { shards: undefined }),
    ],
  ])("%s", (_, before, leases, expected, own) => {
    expect(actionsOf(before, leases, own)).toEqual(expected);
  });

  it.each([
    ["has been silent for longer than a Lease lasts", "1", NOW - 15_001, true],
    ["has been silent for just as long", "1", NOW - 15_000, false],
    ["was renewed since", "0", NOW - 60_000, false],
  ])("declares a session dead, or not, that %s", (_, version, since, expires) => {
    const before = state({ seen: new Map([["kindstack-replica-b", { version, since }]]) });
    const actions = actionsOf(before, [session("b"), shard(0, "b")]);
    expect(actions).toEqual(expires ? ["expire b", "acquire 3 of 0,1,2"] : ["acquire 1 of 1,2"]);
  });

  it("counts a session's silence from when it was first seen as it is", () => {
    const { seen } = step(state(), OWN, [OWN, session("b")], NOW, SHARING);
    expect(seen.get("kindstack-replica-b")).toEqual({ version: "1", since: NOW });
  });
});
