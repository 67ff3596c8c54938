/** When an object's resources are compared next; by `performance.now()`. */
export class Refreshes {
  #dueAt: number | undefined;

  /**
   * How long from now the next one is due. The first after a start comes at a random time, so that not all come together.
   *
   * @param everySeconds {@link Capabilities.refreshEvery}
   */
  dueMs(everySeconds: number, now: number): number {
    this.#dueAt ??= now + Math.random() * everySeconds * 1000;
    return Math.round(this.#dueAt - now);
  }

  /** All resources were compared. */
  done(everySeconds: number, now: number): void {
    this.#dueAt = now + everySeconds * 1000;
  }
}
