/** When an object's resources are compared next; by `performance.now()`. */
export class Refreshes {
  #dueAt: number | undefined;

  /**
   * How long from now the next one is due; `undefined` when none is. The first after a start comes at a random time, so that not
   * all come together.
   *
   * @param everySeconds {@link Capabilities.refreshEvery}
   */
  dueMs(everySeconds: number | undefined, now: number): number | undefined {
    if (everySeconds !== undefined) this.#dueAt ??= now + Math.random() * everySeconds * 1000;
    return this.#dueAt === undefined ? undefined : Math.round(this.#dueAt - now);
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
