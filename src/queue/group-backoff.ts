import { exponentialBackoff } from "./backoff";
import type { Item } from "./item";

const BASE_MS = 2_000;
/** Short enough for a group to be well within a minute of the end of what it failed for. */
const GROUP_CAP_MS = 40_000;
/** Objects that fail each for itself are many updates. */
const SINGLE_CAP_MS = 5 * 60_000;
/** Members that are retried at a time, in one update. Each retry takes others: unrelated objects may fail for one reason. */
const PROBES = 8;
/** A group that fails again within this time continues its back-off. */
const REGROUPED_WITHIN_MS = 60_000;

interface Group<T> {
  /** By id; those that failed longest ago come first. */
  members: Map<string, T>;
  /** The ids of those that are being tried. */
  probes: Set<string>;
  failures: number;
  timer: NodeJS.Timeout | undefined;
  /** Runs while the group is empty. */
  expiry: NodeJS.Timeout | undefined;
}

/**
 * Back-off of objects that fail together, such as those of one stack whose table is missing: a few are tried for all of
 * them, later each time, and all others only when one of these has succeeded.
 */
export class GroupBackoff<T extends Item> {
  readonly #retry: (item: T) => void;
  readonly #groups = new Map<string, Group<T>>();
  /** The group's name by the item's id. */
  readonly #groupOf = new Map<string, string>();

  /** @param retry called with an item that is to be tried */
  constructor(retry: (item: T) => void) {
    this.#retry = retry;
  }

  /** An item has failed for the reason of a group: it is tried again with the group. */
  failed(item: T, name: string): void {
    const id = item.id;
    if (this.#groupOf.get(id) !== name) this.forget(item);
    const group = this.#groups.get(name) ?? newGroup();
    this.#groups.set(name, group);
    clearTimeout(group.expiry);
    this.#groupOf.set(id, name);
    group.probes.delete(id);
    group.members.delete(id); // its next try follows those of all others
    group.members.set(id, item);
    if (group.timer === undefined && group.probes.size === 0) this.#schedule(group);
  }

  /** An item has succeeded: if it was tried for its group, all others are tried now. */
  succeeded(item: T): void {
    const name = this.#groupOf.get(item.id);
    const group = name === undefined ? undefined : this.#groups.get(name);
    if (name === undefined || !group?.probes.has(item.id)) {
      this.forget(item);
      return;
    }
    const released = [...group.members.values()];
    for (const member of released) this.#groupOf.delete(member.id);
    group.members.clear();
    group.probes.clear();
    clearTimeout(group.timer);
    group.timer = undefined;
    group.expiry = setTimeout(() => this.#groups.delete(name), REGROUPED_WITHIN_MS).unref();
    for (const member of released) if (member.id !== item.id) this.#retry(member);
  }

  /** An item is no longer one of its group: it is gone, or failed otherwise. */
  forget(item: T): void {
    const id = item.id;
    const name = this.#groupOf.get(id);
    const group = name === undefined ? undefined : this.#groups.get(name);
    this.#groupOf.delete(id);
    if (name === undefined || group === undefined) return;
    group.members.delete(id);
    const wasLastProbe = group.probes.delete(id) && group.probes.size === 0;
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

  #schedule(group: Group<T>): void {
    const capMs = group.members.size > 1 ? GROUP_CAP_MS : SINGLE_CAP_MS;
    const ms = exponentialBackoff(group.failures++, { baseMs: BASE_MS, capMs });
    group.timer = setTimeout(() => {
      group.timer = undefined;
      const probes = [...group.members.values()].slice(0, PROBES);
      group.probes = new Set(probes.map(({ id }) => id));
      for (const item of probes) this.#retry(item);
    }, ms).unref();
  }
}

function newGroup<T>(): Group<T> {
  return { members: new Map(), probes: new Set(), failures: 0, timer: undefined, expiry: undefined };
}
