/** What may be spent: so much at once, and then as it comes in. */
export class Budget {
  #left: number;
  #at = performance.now();

  constructor(
    private readonly capacity: number,
    private readonly perSecond: number,
  ) {
    this.#left = capacity;
  }

  /** May be more than is left. */
  spend(amount: number): void {
    this.#refill();
    this.#left -= amount;
  }

  /** How long until something is left, in ms. */
  get waitMs(): number {
    this.#refill();
    return this.#left > 0 ? 0 : Math.ceil((1 - this.#left / this.perSecond) * 1000);
  }

  #refill(): void {
    const now = performance.now();
    this.#left = Math.min(this.capacity, this.#left + ((now - this.#at) / 1000) * this.perSecond);
    this.#at = now;
  }
}
