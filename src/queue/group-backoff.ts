import { exponentialBackoff } from "./work-queue";

const BASE_MS = 2_000;
/** Short enough for a group to be well within a minute of the end of what it failed for. */
const GROUP_CAP_MS = 40_000;
/** Objects that fail each for itself are many updates. */
const SINGLE_CAP_MS = 5 * 60_000;
/** So many are tried at a time, which is one update; each time others, for they may fail for one reason by chance. */
const PROBES = 8;
/** A group that is together again within this time has never been well. */
const MEMORY_MS = 60_000;

interface Group {
  /** Those that failed longest ago come first. */
  members: Set<string>;
  /** Those that are being tried. */
  probes: Set<string>;
  failures: number;
  timer: NodeJS.Timeout | undefined;
  /** Runs while nothing is in it. */
  expiry: NodeJS.Timeout | undefined;
}

export interface GroupBackoffOptions {
  /** Called with a key whose turn it is to be tried. */
  retry(key: string): void;
  /** A number from 0 to 1, for the jitter. */
  random?: () => number;
}

/**
 * Back-off of objects that fail together, such as those of one stack whose table is missing: a few are tried for all of
 * them, later each time, and all others only when one of these has succeeded.
 */
export class GroupBackoff {
  readonly #retry: (key: string) => void;
  readonly #random: () => number;
  readonly #groups = new Map<string, Group>();
  readonly #groupOf = new Map<string, string>();

  constructor({ retry, random = Math.random }: GroupBackoffOptions) {
    this.#retry = retry;
    this.#random = random;
  }

  /** A key has failed for what a group stands for: it is tried again with that. */
  failed(key: string, name: string): void {
    if (this.#groupOf.get(key) !== name) this.left(key);
    const group = this.#groups.get(name) ?? newGroup();
    this.#groups.set(name, group);
    clearTimeout(group.expiry);
    this.#groupOf.set(key, name);
    group.probes.delete(key);
    group.members.delete(key); // its next turn comes after all the others'
    group.members.add(key);
    if (group.timer === undefined && group.probes.size === 0) this.#schedule(group);
  }

  /** A key has succeeded: if it was tried for its group, all others are tried now. */
  succeeded(key: string): void {
    const name = this.#groupOf.get(key);
    const group = name === undefined ? undefined : this.#groups.get(name);
    const wasProbe = group?.probes.has(key);
    this.left(key);
    if (name === undefined || group === undefined || !wasProbe) return;
    const released = [...group.members];
    for (const member of released) this.#groupOf.delete(member);
    group.members.clear();
    group.probes.clear();
    clearTimeout(group.timer);
    group.timer = undefined;
    group.expiry = setTimeout(() => this.#groups.delete(name), MEMORY_MS).unref();
    for (const member of released) this.#retry(member);
  }

  /** A key is no longer one of its group: it is gone, or failed otherwise. */
  left(key: string): void {
    const name = this.#groupOf.get(key);
    const group = name === undefined ? undefined : this.#groups.get(name);
    this.#groupOf.delete(key);
    if (name === undefined || group === undefined) return;
    group.members.delete(key);
    const wasLastProbe = group.probes.delete(key) && group.probes.size === 0;
    if (group.members.size === 0) {
      clearTimeout(group.timer);
      this.#groups.delete(name);
    } else if (wasLastProbe && group.timer === undefined) {
      this.#schedule(group);
    }
  }

  /** Ends all waiting. */
  stop(): void {
    for (const { timer, expiry } of this.#groups.values()) {
      clearTimeout(timer);
      clearTimeout(expiry);
    }
    this.#groups.clear();
    this.#groupOf.clear();
  }

  #schedule(group: Group): void {
    const capMs = group.members.size > 1 ? GROUP_CAP_MS : SINGLE_CAP_MS;
    const ms = exponentialBackoff(group.failures++, { baseMs: BASE_MS, capMs }, this.#random);
    group.timer = setTimeout(() => {
      group.timer = undefined;
      group.probes = new Set([...group.members].slice(0, PROBES));
      for (const key of group.probes) this.#retry(key);
    }, ms).unref();
  }
}

function newGroup(): Group {
  return { members: new Set(), probes: new Set(), failures: 0, timer: undefined, expiry: undefined };
}
