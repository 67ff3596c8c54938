/** So many connections a second are taken in all before addresses share them, and of each address in any case. */
const PER_SECOND = { all: 100, each: 5 };
/** After so long, an address that has opened no connection is forgotten: it has all of its burst again. */
const FORGOTTEN_MS = 10_000;

interface Bucket {
  /** How many connections may come at once. */
  tokens: number;
  /** By `performance.now()`. */
  at: number;
}

/**
 * Limits how fast each address opens connections. A handshake takes a millisecond of the event loop: a client that opens its
 * connections again and again would keep it busy, and the system then drops those of others before they are seen.
 */
export class Arrivals {
  /** Those that came last are last. */
  readonly #buckets = new Map<string, Bucket>();

  /** @param burst connections that an address may open at once */
  constructor(private readonly burst: number) {}

  /** A connection has come. @returns whether it is taken */
  admit(address: string): boolean {
    const bucket = this.#refilled(address);
    if (bucket.tokens < 1) return false;
    bucket.tokens--;
    return true;
  }

  /** A connection of this address has shown whose it is, so that it does not count. */
  excuse(address: string): void {
    const bucket = this.#buckets.get(address);
    if (bucket !== undefined) bucket.tokens = Math.min(this.burst, bucket.tokens + 1);
  }

  /** A connection of this address carries what no client sends that means well: it counts as one more. */
  charge(address: string): void {
    const bucket = this.#refilled(address);
    bucket.tokens = Math.max(0, bucket.tokens - 1);
  }

  #refilled(address: string): Bucket {
    const now = performance.now();
    const { tokens, at } = this.#buckets.get(address) ?? { tokens: this.burst, at: now };
    const perSecond = Math.max(PER_SECOND.each, PER_SECOND.all / Math.max(1, this.#buckets.size));
    const bucket = { tokens: Math.min(this.burst, tokens + ((now - at) / 1000) * perSecond), at: now };
    this.#buckets.delete(address);
    this.#buckets.set(address, bucket);
    for (const [oldest, { at: last }] of this.#buckets) {
      if (now - last < FORGOTTEN_MS) break;
      this.#buckets.delete(oldest);
    }
    return bucket;
  }
}
