/** So many connections a second are taken in all before addresses share them, and of each address in any case. */
const PER_SECOND = { all: 100, each: 5 };
/** An address without new connections for this long is forgotten: its whole burst is available again. */
const FORGOTTEN_MS = 10_000;

interface Bucket {
  /** How many connections may come at once. */
  tokens: number;
  /** By `performance.now()`. */
  at: number;
}

/**
 * Limits how fast each address opens connections. A handshake takes a millisecond of the event loop. A client that opens
 * connections again and again would occupy the loop, and the system would drop connections of other clients unseen.
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

  /** A connection of this address has shown a known user: the connection does not count. */
  excuse(address: string): void {
    const bucket = this.#buckets.get(address);
    if (bucket !== undefined) bucket.tokens = Math.min(this.burst, bucket.tokens + 1);
  }

  /** A connection of this address carries hostile content: it counts as another connection. */
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
