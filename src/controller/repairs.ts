import { ADMISSION } from "../../providers/kubernetes/field-differences";
import { isObjectOutputs } from "../../providers/kubernetes/object";
import { MASKED } from "../../providers/literal";
import type { FieldDrift } from "../../providers/provider";
import { objectKey } from "../../stacks/contract/object";
import { driftIn, type StackResource } from "../automation/event-log";
import { shortChange } from "../text/plain-text";
import { describeId } from "./describe";

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
  repaired(keys: readonly string[], altered: readonly string[], now: number, isReported: boolean): Set<string> {
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

const FIRST_DELAY_MS = 10_000;
const SLOWEST_MS = 5 * 60_000;
const WINDOW_MS = 60_000;

/**
 * How long what has to be done again and again waits: 10 s after the first time, then twice as long each time. All times are
 * those of `performance.now()`: a clock that is set must not put anything off.
 */
export class DriftBackoff {
  #last = Number.NEGATIVE_INFINITY;
  #delayMs = 0;

  /** The next time waits until then. */
  get notBefore(): number {
    return this.#last + this.#delayMs;
  }

  /** Counts a repair. A repair a minute or more after the end of the back-off begins a new series. */
  happened(now: number): void {
    const isFirst = this.#delayMs === 0 || now >= this.notBefore + WINDOW_MS;
    this.#delayMs = isFirst ? FIRST_DELAY_MS : Math.min(SLOWEST_MS, 2 * this.#delayMs);
    this.#last = now;
  }
}

/** When an object's resources are compared next; by `performance.now()`. */
export class Refreshes {
  #dueAt: number | undefined;
  /** The share of an interval after which the first one is due: not all come together after a start. */
  readonly #first = Math.random();

  constructor(private readonly since: number) {}

  /** How long from now the next one is due; `undefined` when none is. */
  dueMs(everySeconds: number | undefined, now: number): number | undefined {
    const first = everySeconds === undefined ? undefined : this.since + this.#first * everySeconds * 1000;
    const dueAt = this.#dueAt ?? first;
    return dueAt === undefined ? undefined : Math.round(dueAt - now);
  }

  /** One is due, whatever the kind's interval. */
  request(now: number): void {
    this.#dueAt = now;
  }

  /** All resources were compared. */
  done(everySeconds: number | undefined, now: number): void {
    this.#dueAt = everySeconds === undefined ? undefined : now + everySeconds * 1000;
  }
}

/** A change by another client that an update was to correct. */
export interface Revert {
  /** Resource, field and manager of the change: repeated reverts have the same key. */
  key: string;
  /** The repair in words, for Events; absent where a poll has its own words. */
  repaired?: string;
  /** The state of a conflict over it. */
  conflict: string;
}

const LONGEST_VALUE = 60;

/** The drift that an update has corrected. @param polled the words of polls, for drift that no watch shows */
export function revertsIn(
  resources: readonly StackResource[],
  missing: readonly string[],
  polled: string | undefined,
): Revert[] {
  const fields = resources.flatMap((resource) =>
    (resource.corrected ?? []).map((drift) => revertOf(resource, drift, polled)),
  );
  const deletions = missing.map((id) => {
    const what = describeId(id);
    return {
      key: `${id} is deleted`,
      repaired: `${what} was deleted`,
      conflict: `${what} is deleted by another client`,
    };
  });
  const polls = polled === undefined ? [] : [{ key: polled, repaired: polled, conflict: `again and again, ${polled}` }];
  return [...fields, ...deletions, ...polls];
}

/** Fields that admission changed in the update's own write: each further write would have the same result. */
export function alterationsIn(resources: readonly StackResource[]): Revert[] {
  return resources.flatMap((resource) => driftIn(resource.outputs).map((drift) => revertOf(resource, drift)));
}

function revertOf(
  { urn, name, outputs }: StackResource,
  { field, by, ...values }: FieldDrift,
  polled?: string,
): Revert {
  const isObject = isObjectOutputs(outputs);
  const what = isObjectOutputs(outputs) ? `${outputs.manifest.kind} ${objectKey(outputs.manifest.metadata)}` : name;
  const hasSecret = JSON.stringify(outputs).includes(MASKED);
  const shown = hasSecret ? ["…", "…"] : shortChange(values.live, values.wanted, LONGEST_VALUE);
  const live = values.live === undefined ? "nothing" : shown[0];
  const wanted = shown[1];
  const who = by === ADMISSION ? ": admission changed it" : by === undefined ? "" : `: set by ${by}`;
  return {
    key: `${urn} ${field} ${by ?? ""}`,
    ...((isObject || polled === undefined) && {
      repaired: `${what}: ${field} ${live} → ${wanted}${by === undefined ? "" : ` (${by})`}`,
    }),
    conflict: `${what}: ${field} is ${live} in place of ${wanted}${who}`,
  };
}
