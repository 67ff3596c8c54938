import type { LiveObject } from "../../providers/kubernetes/client";
import type { NewCondition } from "../../stacks/contract/condition";
import { type Turn, writeStatus } from "./context";

/** An update in a stack that others share is announced only if it takes longer than this. */
const ANNOUNCE_AFTER_MS = 10_000;

/**
 * Says in an object's status that an update of it runs: at once, beside the update, or only when it is not over soon, so
 * that a thousand short ones are not two thousand writes.
 */
export class Announcement {
  readonly #before: LiveObject;
  readonly #timer: NodeJS.Timeout | undefined;
  #written: Promise<LiveObject> | undefined;

  constructor(before: LiveObject, write: () => Promise<LiveObject>, afterMs: number) {
    this.#before = before;
    const announce = () => {
      this.#written = write();
      this.#written.catch(() => {}); // heard of in `over`; until then nobody listens
    };
    if (afterMs === 0) announce();
    else this.#timer = setTimeout(announce, afterMs);
  }

  /** No more is said. */
  cancel(): void {
    clearTimeout(this.#timer);
  }

  /** No more is said; resolves with the object as it then is. @throws what the write threw */
  over(): Promise<LiveObject> {
    this.cancel();
    return this.#written ?? Promise.resolve(this.#before);
  }
}

/** Begins to say so of a turn's work. @param mayWait whether that it was begun can be seen without it */
export function announce(
  turn: Turn,
  object: LiveObject,
  conditions: NewCondition[],
  { mayWait }: { mayWait: boolean },
): Announcement {
  return new Announcement(object, () => writeStatus(turn, object, { conditions }), mayWait ? ANNOUNCE_AFTER_MS : 0);
}
