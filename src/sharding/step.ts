import { TerminalError } from "../../providers/errors";
import type { LeaseRecord } from "./lease-store";

export const SESSION_PREFIX = "kindstack-replica-";
export const SHARD_PREFIX = "kindstack-shard-";

/** What a replica knows when it looks at the Leases. */
export interface ReplicaState {
  held: ReadonlyMap<number, LeaseRecord>;
  /** The held shards that this replica gives back; `true` when no work on the shard is left. */
  yielding: ReadonlyMap<number, boolean>;
  /** What was last seen of each session, and since when. */
  seen: ReadonlyMap<string, { version: string; since: number }>;
  /** Whether it holds nothing and waits until replicas with another number of shards have left. */
  standsBack: boolean;
  leaving: boolean;
}

/** Must be the same in all replicas of an operator. */
export interface ShardingConfig {
  shards: number;
  timing: Pick<LeaseTiming, "leaseDurationMs">;
}

/** Actions of a replica, in this order. */
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
  /** Wait for replicas with another number of shards to leave. */
  | { type: "standBack"; others: LeaseRecord[] }
  /** Take `count` of these free shards. */
  | { type: "acquire"; count: number; candidates: { shard: number; record: LeaseRecord | undefined }[] };

/**
 * One step of a replica: from its state and the Leases to its next state and actions. Pure.
 *
 * @param now on a clock of the replica's own that is never set
 */
export function step(
  state: ReplicaState,
  session: LeaseRecord,
  leases: readonly LeaseRecord[],
  now: number,
  config: ShardingConfig,
): Pick<ReplicaState, "seen" | "standsBack"> & { actions: Action[] } {
  const sessions = leases.filter(({ name }) => name.startsWith(SESSION_PREFIX));
  const ofShards = leases.filter(({ name }) => name.startsWith(SHARD_PREFIX));
  const shards = new Map(ofShards.map((record) => [Number(record.name.slice(SHARD_PREFIX.length)), record]));
  const seen = look(state, sessions, now);
  const silentMs = ({ name }: LeaseRecord) => now - (seen.get(name)?.since ?? now);
  const isOver = (other: LeaseRecord) =>
    other.name !== session.name && (other.holder === undefined || silentMs(other) > config.timing.leaseDurationMs);
  const expired: Action[] = sessions
    .filter(isOver)
    .map((other) => ({ type: "expire", session: other, silentMs: silentMs(other) }));

  // The Leases decide, not what the replica knows: answers to its writes may have been lost.
  const held = new Map([...shards].filter(([shard, { holder }]) => holder === session.name && shard < config.shards));
  const gone = [...state.held.keys()].filter((shard) => !held.has(shard));
  const taken = gone.find((shard) => !state.yielding.get(shard));
  if (taken !== undefined) {
    const reason = `the Lease ${SHARD_PREFIX}${taken} was taken away`;
    return { seen, standsBack: state.standsBack, actions: [...expired, { type: "lose", reason }] };
  }
  const corrections: Action[] = [
    ...gone.map((shard) => ({ type: "released" as const, shard })),
    ...[...held].map(([shard, record]) => ({ type: "hold" as const, shard, record })),
  ];

  const living = sessions.filter((other) => !isOver(other));
  const { standsBack, actions } = balance({ ...state, held }, session, living, shards, config);
  return { seen, standsBack, actions: [...expired, ...corrections, ...actions] };
}

/** Since when each session has been as it is. */
function look({ seen }: ReplicaState, sessions: readonly LeaseRecord[], now: number): ReplicaState["seen"] {
  return new Map(
    sessions.map(({ name, version }) => {
      const before = seen.get(name);
      return [name, before?.version === version ? before : { version, since: now }];
    }),
  );
}

/** Acquires free shards or yields surplus ones, so that all replicas hold about the same number. */
function balance(
  { held, yielding, standsBack, leaving }: ReplicaState,
  session: LeaseRecord,
  living: readonly LeaseRecord[],
  shards: ReadonlyMap<number, LeaseRecord>,
  { shards: count }: ShardingConfig,
): { standsBack: boolean; actions: Action[] } {
  const others = living.filter(({ name }) => name !== session.name);
  const strangers = others.filter((other) => other.shards !== undefined && other.shards !== count);
  if (strangers.length > 0) {
    // Among another number, a stack has another Lease: nothing is safe until they are gone, or stand back.
    const holders = new Set([...shards.values()].map(({ holder }) => holder));
    const cameFirst = strangers.some(({ name }) => holders.has(name) || name < session.name);
    const yields = held.size === 0 && cameFirst && !standsBack;
    return { standsBack: standsBack || yields, actions: yields ? [{ type: "standBack", others: strangers }] : [] };
  }
  if (leaving) return { standsBack, actions: [] };
  // The next renewal publishes the number, and only the look after it counts.
  if (session.shards !== count) return { standsBack: false, actions: [] };
  // The remainder of an uneven division stays with its present holders: no shard moves without need.
  const load = (name: string) => [...shards.values()].filter(({ holder }) => holder === name).length;
  const peers = [session.name, ...others.filter((other) => other.shards === count).map(({ name }) => name)];
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

/** The times of a Lease, in milliseconds, as client-go's `leaderelection` names them. */
export interface LeaseTiming {
  /** Time without renewal after which other replicas take over. */
  leaseDurationMs: number;
  /** Time without renewal after which a replica stops its work. */
  renewDeadlineMs: number;
  /** The time between two renewals. */
  retryPeriodMs: number;
}

/** Largest random extension of the retry period, so that replicas do not all ask at once; as in client-go. */
const JITTER = 0.2;

/** @throws TerminalError `Misconfigured` when the times leave no room for what has to happen between them */
export function checkTiming({ leaseDurationMs, renewDeadlineMs, retryPeriodMs }: LeaseTiming): void {
  if (leaseDurationMs <= renewDeadlineMs) {
    throw new TerminalError("Misconfigured", "--lease-duration must be longer than --renew-deadline");
  }
  if (renewDeadlineMs <= retryPeriodMs * (1 + JITTER)) {
    throw new TerminalError("Misconfigured", "--renew-deadline must be longer than 1.2 times --retry-period");
  }
}

export function untilNextTry({ retryPeriodMs }: LeaseTiming): number {
  return retryPeriodMs * (1 + JITTER * Math.random());
}

/**
 * How long after a renewal the last process of an update is killed: late enough for an interrupted update to save, and
 * some time before others may take over.
 */
export function killAfterMs({ leaseDurationMs, renewDeadlineMs }: LeaseTiming): number {
  return leaseDurationMs - (leaseDurationMs - renewDeadlineMs) / 4;
}
