import { DriftBackoff } from "./drift-backoff";

/** So many repairs of the same field against the same client, one after the other, are a conflict with it, and no accidents. */
export const REVERTS_OF_CONFLICT = 3;
/** What stays for so long was not reverted when it changes again. */
const FORGOTTEN_MS = 24 * 60 * 60_000;
/** How long the repairs of another process are taken to have stayed, the last one when this process first saw the object. */
const ASSUMED_STAY_MS = 60_000;

/**
 * The repairs of one object: how often in a row each field was reverted, at whatever pace, and how long the next repair of a
 * conflict waits.
 */
export class Repairs {
  /** How often each was reverted, and when last. Made when it is needed: seldom. */
  #reverts: Map<string, { count: number; at: number }> | undefined;
  #last: number | undefined;
  /** The longest that a repair stayed. */
  #stayedMs = 0;
  #backoff: DriftBackoff | undefined;
  /** Whether another process has reported a conflict, which is not over yet. */
  #resumed = false;

  constructor(private readonly since: number) {}

  /** The next repair waits until then. */
  get notBefore(): number {
    return this.#backoff?.notBefore ?? Number.NEGATIVE_INFINITY;
  }

  /** When a reported conflict is over, if nothing has to be repaired until then: this repair has stayed as none before it. */
  get conflictOverAt(): number {
    if (this.#last === undefined) return this.since + 2 * ASSUMED_STAY_MS;
    return Math.max(this.notBefore, this.#last + 2 * this.#stayedMs);
  }

  /**
   * Counts a repair of these.
   *
   * @param altered what was changed again at once
   * @param isReported whether the status tells of a conflict; it continues, where this process knows nothing of it
   * @returns what is in conflict
   */
  repaired(keys: readonly string[], altered: readonly string[], now: number, isReported = false): Set<string> {
    if (this.#last === undefined && isReported) {
      this.#last = this.since;
      this.#stayedMs = ASSUMED_STAY_MS;
      this.#resumed = true;
    }
    const stayedMs = now - (this.#last ?? Number.NEGATIVE_INFINITY);
    if (stayedMs > FORGOTTEN_MS) this.reset();
    else this.#stayedMs = Math.max(this.#stayedMs, stayedMs);
    this.#last = now;
    if (keys.length > 0) this.#reverts ??= new Map();
    for (const [key, { at }] of this.#reverts ?? []) if (now - at > FORGOTTEN_MS) this.#reverts?.delete(key);
    const countOf = (key: string) => this.#reverts?.get(key)?.count ?? 0;
    for (const key of keys) this.#reverts?.set(key, { count: countOf(key) + 1, at: now });
    const fought = keys.filter((key) => this.#resumed || countOf(key) >= REVERTS_OF_CONFLICT);
    const inConflict = new Set([...altered, ...fought]);
    if (inConflict.size > 0) {
      this.#backoff ??= new DriftBackoff();
      this.#backoff.happened(now);
    }
    return inConflict;
  }

  /** The conflict is over: the next repair is the first one. */
  reset(): void {
    this.#resumed = false;
    this.#reverts = undefined;
    this.#stayedMs = 0;
    this.#backoff = undefined;
  }
}
