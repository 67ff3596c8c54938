import { setImmediate } from "node:timers/promises";
import pino from "pino";
import { beforeEach, describe, expect, it, vi } from "vitest";
import type { LeaseRecord } from "../../src/sharding/lease-store";
import { Replica, type ShardWorker } from "../../src/sharding/replica";
import { checkTiming, killAfterMs } from "../../src/sharding/step";
import { LeaseMemory } from "./lease-memory";

const timing = { leaseDurationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 2_000 };
const TICK_MS = 2_000;
const logger = pino({ level: "silent" });

let store: LeaseMemory;
/** One for all, in ms; each replica sees it from an offset of its own. */
let clock: number;
let members: Member[];
beforeEach(() => {
  store = new LeaseMemory();
  clock = 0;
  members = [];
});

/** A replica whose work is a list of what it was told. */
class Member implements ShardWorker {
  readonly replica: Replica;
  readonly told: string[] = [];
  /** What it is asked to finish waits for this. */
  working: Promise<void> = Promise.resolve();
  frozen = false;
  #sessions = 0;

  constructor(
    readonly id: string,
    shards: number,
    clockOffset = 0,
  ) {
    this.replica = new Replica({
      store,
      worker: this,
      shards,
      timing,
      logger,
      now: () => clock + clockOffset,
      sessionName: () => `${id}-${++this.#sessions}`,
    });
    members.push(this);
  }

  get held(): number[] {
    return Array.from({ length: 16 }, (_, shard) => shard).filter((shard) => this.replica.holds(shard));
  }

  acquired(shard: number): void {
    this.told.push(`+${shard}`);
  }

  drained(): Promise<void> {
    return this.working;
  }

  async lost(graceMs: number): Promise<void> {
    this.told.push(`lost, ${graceMs} ms`);
    await this.working;
  }

  renewed(): void {}
}

/** Time goes by; all that are not frozen do what they do every retry period, in the order in which they were made. */
async function pass(ms: number): Promise<void> {
  for (const end = clock + ms; clock < end; ) {
    clock += TICK_MS;
    for (const member of members.filter(({ frozen }) => !frozen)) {
      await member.replica.tick().catch(() => undefined);
      await setImmediate(); // what was waited for is told
    }
  }
}

describe("one replica", () => {
  it("takes all shards at once, and keeps them", async () => {
    const a = new Member("a", 4);
    await pass(TICK_MS);
    expect(a.told).toEqual(["+0", "+1", "+2", "+3"]);
    await pass(60_000);
    expect(a.held).toEqual([0, 1, 2, 3]);
    expect(a.told).toHaveLength(4);
  });

  it("stops its work at the renewal deadline when the API server is away, and begins again when it is back", async () => {
    const a = new Member("a", 1);
    await pass(TICK_MS);
    store.down = true;
    await pass(timing.renewDeadlineMs - TICK_MS);
    expect(a.held).toEqual([0]);
    await pass(TICK_MS);
    expect(a.held).toEqual([]);
    expect(a.told).toEqual(["+0", "lost, 3750 ms"]);
    store.down = false;
    await pass(2 * TICK_MS);
    expect(a.held).toEqual([0]);
  });

  it("takes nothing more before the work that it lost has ended", async () => {
    const a = new Member("a", 1);
    await pass(TICK_MS);
    const work = Promise.withResolvers<void>();
    a.working = work.promise;
    store.down = true;
    await pass(timing.renewDeadlineMs);
    store.down = false;
    await pass(60_000);
    expect(a.held).toEqual([]);
    work.resolve();
    await setImmediate();
    await pass(2 * TICK_MS);
    expect(a.held).toEqual([0]);
  });

  it.each(["before", "after"] as const)(
    "outlives a renewal without an answer, lost %s it took effect",
    async (when) => {
      const a = new Member("a", 2);
      await pass(TICK_MS);
      store.failNext = when;
      await pass(60_000);
      expect([a.told, a.held]).toEqual([
        ["+0", "+1"],
        [0, 1],
      ]);
    },
  );

  it("outlives a user's edit of its Lease", async () => {
    const a = new Member("a", 1);
    await pass(TICK_MS);
    const record = store.get("kindstack-replica-a-1");
    if (record !== undefined) await store.update(record, { holder: record.holder });
    await pass(60_000);
    expect(a.told).toEqual(["+0"]);
  });

  it("stops at once when a shard's Lease is taken from it by hand", async () => {
    const a = new Member("a", 1);
    await pass(TICK_MS);
    const record = store.get("kindstack-shard-0");
    if (record !== undefined) await store.update(record, { holder: "somebody" });
    await pass(TICK_MS);
    expect(a.told).toEqual(["+0", "lost, 0 ms"]);
  });
});

describe("several replicas", () => {
  it("wait in line for one shard", async () => {
    const [a, b] = [new Member("a", 1), new Member("b", 1)];
    await pass(60_000);
    expect([a.held, b.held]).toEqual([[0], []]);
  });

  it("share as evenly as can be, also with those who come later, and then rest", async () => {
    const a = new Member("a", 5);
    await pass(10_000);
    const b = new Member("b", 5);
    await pass(10_000);
    expect([a.held.length, b.held.length]).toEqual([3, 2]);
    const c = new Member("c", 5);
    await pass(10_000);
    expect([a.held.length, b.held.length, c.held.length]).toEqual([2, 2, 1]);
    expect(new Set([...a.held, ...b.held, ...c.held]).size).toBe(5);
    const told = members.map(({ told }) => told.length);
    await pass(60_000);
    expect(members.map(({ told }) => told.length)).toEqual(told);
  });

  it("give a shard back only when the work on it has ended, and begin nothing meanwhile", async () => {
    const a = new Member("a", 2);
    await pass(TICK_MS);
    const work = Promise.withResolvers<void>();
    a.working = work.promise;
    const b = new Member("b", 2);
    await pass(60_000);
    expect(a.held).toHaveLength(1);
    expect(b.held).toEqual([]);
    expect([0, 1].every((shard) => a.replica.mayWriteTo(shard))).toBe(true);
    work.resolve();
    await setImmediate();
    await pass(2 * TICK_MS);
    expect(b.held).toHaveLength(1);
  });

  it("take over at once from one that leaves", async () => {
    const [a, b] = [new Member("a", 3), new Member("b", 3)];
    await pass(10_000);
    a.replica.leave();
    await pass(2 * TICK_MS);
    expect(a.replica.hasLeft).toBe(true);
    await a.replica.close();
    expect(b.held).toEqual([0, 1, 2]);
    expect(store.sessions()).toEqual(["kindstack-replica-b-1"]);
  });

  it.each([0, 1_000_000, -1_000_000])(
    "take over from one that is silent for the Lease's duration, their clocks %i ms apart",
    async (offset) => {
      const [a, b] = [new Member("a", 1), new Member("b", 1, offset)];
      await pass(10_000);
      a.frozen = true;
      const silentSince = clock;
      await pass(timing.leaseDurationMs - TICK_MS);
      expect(b.held).toEqual([]);
      await pass(TICK_MS);
      expect(b.held).toEqual([0]);
      expect(clock - silentSince).toBeLessThanOrEqual(timing.leaseDurationMs + TICK_MS);
      expect(store.get("kindstack-shard-0")?.transitions).toBe(1);
    },
  );

  it("find a dead predecessor's Leases only when they have watched them for that long", async () => {
    const a = new Member("a", 1);
    await pass(10_000);
    a.frozen = true;
    clock += 1_000_000;
    const b = new Member("b", 1);
    await pass(timing.leaseDurationMs - 1_000);
    expect(b.held).toEqual([]);
    await pass(2 * TICK_MS);
    expect(b.held).toEqual([0]);
  });
});

describe("a replica that was frozen", () => {
  async function freeze(ms: number): Promise<{ a: Member; b: Member }> {
    const [a, b] = [new Member("a", 1), new Member("b", 1)];
    await pass(10_000);
    a.frozen = true;
    await pass(ms);
    a.frozen = false;
    return { a, b };
  }

  it("knows when it wakes that its time is over, before it has talked to anyone", async () => {
    const { a, b } = await freeze(20_000);
    expect(b.held).toEqual([0]);
    expect(a.replica.mayWriteTo(0)).toBe(false);
    a.replica.noticeExpiry();
    expect(a.told).toEqual(["+0", "lost, 0 ms"]);
  });

  it("comes back as a new one, and waits in line", async () => {
    const { a, b } = await freeze(20_000);
    await pass(60_000);
    expect([a.held, b.held]).toEqual([[], [0]]);
    expect(store.sessions()).toEqual(["kindstack-replica-a-2", "kindstack-replica-b-1"]);
  });

  it("continues when it slept for less than the renewal deadline", async () => {
    const { a } = await freeze(6_000);
    expect(a.replica.mayWriteTo(0)).toBe(true);
    await pass(60_000);
    expect(a.told).toEqual(["+0"]);
  });

  it("cannot renew what another has declared dead, even if its own clock stood still", async () => {
    let stopped = false;
    let stoppedAt = 0;
    const [a, b] = [new Member("a", 1), new Member("b", 1)];
    const sleeper = new Replica({
      store,
      worker: a,
      shards: 2,
      timing,
      logger,
      now: () => (stopped ? stoppedAt : clock),
      sessionName: () => "sleeper-1",
    });
    members.length = 0;
    await sleeper.tick();
    stopped = true;
    stoppedAt = clock;
    members.push(b);
    await pass(30_000);
    expect(sleeper.mayWriteTo(0)).toBe(true); // for all that it knows
    await sleeper.tick();
    expect(sleeper.mayWriteTo(0)).toBe(false);
    expect(a.told.at(-1)).toBe("lost, 0 ms");
  });
});

describe("a replica with more shards than it can write within the renewal deadline", () => {
  const SHARDS = 300;
  /** Each write takes a tenth of a second. */
  function slowReplica(): Member {
    for (const write of ["create", "update"] as const) {
      const original = store[write].bind(store) as (...given: unknown[]) => Promise<LeaseRecord>;
      vi.spyOn(store, write).mockImplementation(async (...given: unknown[]) => {
        clock += 100;
        return original(...given);
      });
    }
    return new Member("a", SHARDS);
  }

  it("takes and gives back all of them, and keeps its Lease meanwhile", async () => {
    const a = slowReplica();
    await pass(120_000);
    expect(a.told).toEqual(Array.from({ length: SHARDS }, (_, shard) => `+${shard}`));
    a.replica.leave();
    while (!a.replica.hasLeft) await pass(TICK_MS);
    expect(a.told).toHaveLength(SHARDS);
  });
});

describe("a replica that runs", () => {
  beforeEach(() => {
    vi.useFakeTimers(); // no pause between two looks at the Leases ends by itself
    return () => vi.useRealTimers();
  });

  it("leaves at once when it holds nothing", async () => {
    await new Member("a", 1).replica.tick();
    const b = new Member("b", 1);
    const running = b.replica.run();
    await setImmediate();
    b.replica.leave();
    await running;
    expect(store.sessions()).toEqual(["kindstack-replica-a-1"]);
  });

  it("gives back its shards at once, also when it is told while it looks at the Leases", async () => {
    const a = new Member("a", 1);
    await a.replica.tick();
    const list = store.list.bind(store);
    vi.spyOn(store, "list").mockImplementationOnce(async () => {
      a.replica.leave();
      await setImmediate();
      return list();
    });
    await a.replica.run();
    expect(store.holders()).toEqual({ 0: undefined });
  });
});

describe("replicas that disagree about the number of shards", () => {
  /** Two that come while one with two shards works, which then leaves: until that they hold nothing. */
  async function followers(start: (name: string) => Member): Promise<[Member, Member]> {
    const old = new Member("old", 2);
    await pass(10_000);
    const [a, b] = [start("a"), start("z")];
    await pass(60_000);
    expect([old.held, a.held, b.held]).toEqual([[0, 1], [], []]);
    old.replica.leave();
    await pass(2 * TICK_MS);
    await old.replica.close();
    await pass(10_000);
    return [a, b];
  }

  it("do not work at the same time: the new ones wait until the old ones have left", async () => {
    const [a, b] = await followers((name) => new Member(name, 4));
    expect([...a.held, ...b.held].sort()).toEqual([0, 1, 2, 3]);
    expect(a.held).toHaveLength(2);
  });

  it("let one of them go first when they start together", async () => {
    const [two, four] = [new Member("two", 2), new Member("four", 4)];
    await pass(60_000);
    expect([
      [2, 0],
      [0, 4],
    ]).toContainEqual([two.held.length, four.held.length]);
  });
});

it("chance never makes two work on one shard, whatever is frozen, lost, started and stopped when", async () => {
  for (let seed = 1; seed <= 40; seed++) {
    store = new LeaseMemory();
    clock = 0;
    members = [];
    let state = seed;
    const random = (below: number) => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
      return Math.floor((state / 2 ** 32) * below);
    };
    for (let step = 0; step < 120; step++) {
      if (members.length < 3) new Member(`m${step}`, random(10) === 0 ? 2 : 4, random(1_000_000));
      const member = members[random(members.length)];
      const event = random(12);
      if (event === 0 && member) member.frozen = !member.frozen;
      if (event === 1) store.failNext = random(2) === 0 ? "before" : "after";
      if (event === 2) store.down = !store.down;
      if (event === 3 && member) member.replica.leave();
      if (event === 4) members = members.filter((other) => other !== member || !member.frozen); // killed
      members = members.filter(({ replica }) => !replica.hasLeft);
      await pass(TICK_MS);
      // Frozen ones are asked as well: that is what they ask themselves first when they wake.
      const owners = members.flatMap(({ replica, id }) =>
        [0, 1, 2, 3].filter((shard) => replica.mayWriteTo(shard)).map((shard) => `${shard} ${id}`),
      );
      const shards = owners.map((owner) => owner.split(" ")[0]);
      expect(shards, `seed ${seed}, step ${step}: ${owners}`).toEqual([...new Set(shards)]);
    }
  }
});

describe("the times of a Lease", () => {
  it("leave time to stop between the renewal deadline and the take-over", () => {
    expect(killAfterMs(timing)).toBeGreaterThan(timing.renewDeadlineMs);
    expect(killAfterMs(timing)).toBeLessThan(timing.leaseDurationMs);
    expect(() => checkTiming(timing)).not.toThrow();
  });

  it.each([
    [{ ...timing, renewDeadlineMs: 15_000 }, "--lease-duration must be longer"],
    [{ ...timing, retryPeriodMs: 9_000 }, "--renew-deadline must be longer"],
  ])("are refused where there is no such time: %j", (wrong, message) => {
    expect(() => checkTiming(wrong)).toThrow(message);
  });
});
