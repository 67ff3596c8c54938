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

  /** Adds to what comes in by itself; the capacity holds for both. */
  earn(amount: number): void {
    this.#refill();
    this.#left = Math.min(this.capacity, this.#left + amount);
  }

  /** How long until what comes in a second is left, in ms; 0 while anything is. */
  get waitMs(): number {
    this.#refill();
    return this.#left > 0 ? 0 : this.msUntil(this.perSecond);
  }

  /** How long until so much is left. */
  msUntil(amount: number): number {
    this.#refill();
    return Math.max(0, Math.ceil(((amount - this.#left) / this.perSecond) * 1000));
  }

  #refill(): void {
    const now = performance.now();
    this.#left = Math.min(this.capacity, this.#left + ((now - this.#at) / 1000) * this.perSecond);
    this.#at = now;
  }
}
