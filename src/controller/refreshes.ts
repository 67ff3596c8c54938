/** When an object's resources are compared next; by `performance.now()`. */
export class Refreshes {
  #dueAt: number | undefined;
  /** The share of an interval after which the first one is due: not all come together after a start. */
  readonly #first = Math.random();

  constructor(private readonly since: number) {}

  /** How long from now the next one is due; `undefined` when none is. @param everySeconds {@link Capabilities.refreshEvery} */
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
