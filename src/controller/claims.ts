import type { ObjectItem } from "./object-item";

/**
 * The holders of claims: of things, such as a namespace, that one object at most may hold.
 *
 * The live object's owner label decides. A claim bridges the time from the decision to update until the label is visible, so
 * that only one of two concurrent claimants is updated.
 */
export class Claims {
  /** Claimed id → UID of the holder. */
  readonly #holders = new Map<string, string>();
  /** Claimed id → who waits for it, by id. */
  readonly #waiting = new Map<string, Map<string, ObjectItem>>();

  /**
   * @param wake called with each object that waited for a claim that is free now
   * @param exists whether an object of this UID exists: a deleted object holds no claim, even if a running reconcile made a
   *   claim after the deletion
   */
  constructor(
    private readonly wake: (waiting: ObjectItem) => void,
    private readonly exists: (uid: string) => boolean,
  ) {}

  /**
   * Takes all of `ids` for `uid`, or none of them.
   *
   * @returns the first id with another holder, and that holder; `item` is then woken when the id may be free
   */
  take(
    uid: string,
    ids: readonly string[],
    item: ObjectItem,
    liveHolder: (id: string) => string | undefined,
  ): { id: string; holder: string } | undefined {
    for (const id of ids) {
      const holder = [this.#holders.get(id), liveHolder(id)].find((uid) => uid !== undefined && this.exists(uid));
      if (holder !== undefined && holder !== uid) {
        this.waitFor(id, item);
        return { id, holder };
      }
    }
    for (const id of ids) this.#holders.set(id, uid);
    return undefined;
  }

  /** After an update that succeeded: `uid` holds `ids` and nothing else. After a destroy: with no ids. */
  retain(uid: string, ids: readonly string[]): void {
    for (const [id, holder] of this.#holders) {
      if (holder !== uid || ids.includes(id)) continue;
      this.#holders.delete(id);
      this.released(id);
    }
  }

  /** From now on `item` waits for `id`: it is woken, once, when that may be free. */
  waitFor(id: string, item: ObjectItem): void {
    const waiting = this.#waiting.get(id) ?? new Map<string, ObjectItem>();
    this.#waiting.set(id, waiting.set(item.id, item));
  }

  /** An object is gone: it holds nothing, and waits for nothing. */
  drop(uid: string, item: ObjectItem): void {
    for (const [id, waiting] of this.#waiting) {
      if (waiting.delete(item.id) && waiting.size === 0) this.#waiting.delete(id);
    }
    this.retain(uid, []);
  }

  /** Wakes who waits for `id`: it may be free. */
  released(id: string): void {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    for (const item of waiting?.values() ?? []) this.wake(item);
  }
}
