import type { LeaseRecord } from "./lease-store";
import type { LeaseTiming } from "./timing";

export const SESSION_PREFIX = "kindstack-replica-";
export const SHARD_PREFIX = "kindstack-shard-";

/** What a replica knows when it looks at the Leases. */
export interface ReplicaState {
  /** Its own session's Lease. */
  session: LeaseRecord;
  /** Each shard that it holds. */
  held: ReadonlyMap<number, LeaseRecord>;
  /** Those of them that it gives back; `true` when no work is left. */
  yielding: ReadonlyMap<number, boolean>;
  /** What was last seen of each session, and since when. */
  seen: ReadonlyMap<string, { version: string; since: number }>;
  /** Whether it holds nothing and waits until replicas of another layout have left. */
  standsBack: boolean;
  leaving: boolean;
}

/** What all replicas of an operator have in common, if they are to share its work. */
export interface ShardingConfig {
  shards: number;
  layout: string;
  timing: Pick<LeaseTiming, "leaseDurationMs">;
}

/** What a replica does about it, in this order. */
export type Action =
  /** Declare a session dead that has been silent for the Lease's duration: it cannot be renewed from then on. */
  | { type: "expire"; session: LeaseRecord; silentMs: number }
  /** Stop all work: a Lease was taken away. */
  | { type: "lose"; reason: string }
  /** Note that a shard is held, by a write whose answer was lost, or as its Lease now is. */
  | { type: "hold"; shard: number; record: LeaseRecord }
  /** Note that a shard is not held any more. */
  | { type: "released"; shard: number }
  /** Give a shard back when the work on it has ended. */
  | { type: "yield"; shard: number }
  /** Wait for replicas of another layout to leave. */
  | { type: "standBack"; others: LeaseRecord[] }
  /** Take so many of these shards, which are free. */
  | { type: "acquire"; count: number; candidates: { shard: number; record: LeaseRecord | undefined }[] };

/**
 * One step of a replica: from what it knows and what the API server has to what it does. Pure; `now` is on a clock of the
 * replica's own that is never set.
 */
export function step(
  state: ReplicaState,
  leases: readonly LeaseRecord[],
  now: number,
  config: ShardingConfig,
): { state: ReplicaState; actions: Action[] } {
  const seen = look(state, leases, now);
  const expired = expiredOf({ ...state, seen }, leases, now, config);
  const dead = new Set(expired.map(({ session }) => session.name));
  const living = leases.filter(({ name }) => name.startsWith(SESSION_PREFIX) && !dead.has(name));
  const shards = new Map(leases.flatMap(shardRecord));
  const corrections = correct(state, shards, config);
  const next = { ...state, seen };
  const actions: Action[] = [...expired, ...corrections];
  if (corrections.some(({ type }) => type === "lose")) return { state: next, actions };
  const held = heldAfter(state.held, corrections);
  const { standsBack, actions: moves } = balance({ ...next, held }, living, shards, config);
  return { state: { ...next, standsBack }, actions: [...actions, ...moves] };
}

/** Since when each session has been as it is. */
function look({ seen }: ReplicaState, leases: readonly LeaseRecord[], now: number): ReplicaState["seen"] {
  const sessions = leases.filter(({ name }) => name.startsWith(SESSION_PREFIX));
  return new Map(
    sessions.map(({ name, version }) => {
      const before = seen.get(name);
      return [name, before?.version === version ? before : { version, since: now }];
    }),
  );
}

function expiredOf(
  { session: own, seen }: ReplicaState,
  leases: readonly LeaseRecord[],
  now: number,
  { timing }: ShardingConfig,
): Extract<Action, { type: "expire" }>[] {
  return leases.flatMap((session) => {
    const since = seen.get(session.name)?.since;
    if (since === undefined || session.name === own.name) return [];
    const silentMs = now - since;
    const isOver = session.holder === undefined || silentMs > timing.leaseDurationMs;
    return isOver ? [{ type: "expire", session, silentMs }] : [];
  });
}

/** What the API server has is so, whatever the replica knows of writes whose answers were lost. */
function correct(
  { session, held, yielding }: ReplicaState,
  shards: ReadonlyMap<number, LeaseRecord>,
  { shards: count }: ShardingConfig,
): Action[] {
  const actions: Action[] = [];
  for (const shard of held.keys()) {
    const record = shards.get(shard);
    if (record?.holder === session.name) actions.push({ type: "hold", shard, record });
    else if (yielding.get(shard)) actions.push({ type: "released", shard });
    else return [{ type: "lose", reason: `the Lease ${SHARD_PREFIX}${shard} was taken away` }];
  }
  for (const [shard, record] of shards) {
    if (record.holder === session.name && shard < count && !held.has(shard)) {
      actions.push({ type: "hold", shard, record });
    }
  }
  return actions;
}

function heldAfter(held: ReplicaState["held"], actions: readonly Action[]): ReplicaState["held"] {
  const after = new Map(held);
  for (const action of actions) {
    if (action.type === "hold") after.set(action.shard, action.record);
    if (action.type === "released") after.delete(action.shard);
  }
  return after;
}

/** Takes what is free, or gives back, so that each replica has as many shards as any other. */
function balance(
  { session, held, yielding, standsBack, leaving }: ReplicaState,
  living: readonly LeaseRecord[],
  shards: ReadonlyMap<number, LeaseRecord>,
  { shards: count, layout }: ShardingConfig,
): { standsBack: boolean; actions: Action[] } {
  const others = living.filter(({ name }) => name !== session.name);
  const strangers = others.filter((other) => other.layout !== undefined && other.layout !== layout);
  if (strangers.length > 0) {
    // In another layout a stack, or an object, has another Lease: nothing is safe until they are gone, or stand back.
    const holders = new Set([...shards.values()].map(({ holder }) => holder));
    const cameFirst = strangers.some(({ name }) => holders.has(name) || name < session.name);
    const yields = held.size === 0 && cameFirst && !standsBack;
    return { standsBack: standsBack || yields, actions: yields ? [{ type: "standBack", others: strangers }] : [] };
  }
  if (leaving) return { standsBack, actions: [] };
  // The next renewal publishes the layout, and only the look after it counts.
  if (session.layout !== layout) return { standsBack: false, actions: [] };
  // What cannot be shared evenly stays where it is, so that nothing moves without need.
  const load = (name: string) => [...shards.values()].filter(({ holder }) => holder === name).length;
  const peers = [session.name, ...others.filter((other) => other.layout === layout).map(({ name }) => name)];
  const rank = peers.sort((a, b) => load(b) - load(a) || (a < b ? -1 : 1)).indexOf(session.name);
  const fair = Math.floor(count / peers.length) + (rank < count % peers.length ? 1 : 0);
  const kept = [...held.keys()].filter((shard) => !yielding.has(shard));
  if (kept.length > fair) {
    return { standsBack, actions: kept.slice(fair).map((shard) => ({ type: "yield", shard })) };
  }
  const names = new Set(living.map(({ name }) => name));
  // Replicas that search at the same time begin at different shards, and meet less often.
  const candidates = Array.from({ length: count }, (_, index) => (rank * fair + index) % count)
    .map((shard) => ({ shard, record: shards.get(shard) }))
    .filter(({ record }) => record?.holder === undefined || !names.has(record.holder));
  return { standsBack, actions: [{ type: "acquire", count: fair - kept.length, candidates }] };
}

function shardRecord(record: LeaseRecord): [number, LeaseRecord][] {
  return record.name.startsWith(SHARD_PREFIX) ? [[Number(record.name.slice(SHARD_PREFIX.length)), record]] : [];
}
