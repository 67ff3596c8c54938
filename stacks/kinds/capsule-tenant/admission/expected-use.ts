import type { Usage } from "../object-usage";
import { type Amount, min, sum } from "../quantity";

/** The API server counts an admitted request within this time, or never. */
export const COUNTED_WITHIN_MS = 1_000;

/** What admitted requests will add to the API server's next counts of one ResourceQuota. */
export class ExpectedUse {
  /** The last count. */
  #used: Usage = new Map();
  /** The oldest first. */
  #requests: { growth: Usage; until: number }[] = [];

  /** A request with this use is admitted. */
  add(growth: Usage): void {
    this.#requests = [...this.#open(), { growth: new Map(growth), until: Date.now() + COUNTED_WITHIN_MS }];
  }

  /** Takes in a count: what it has grown by is no longer expected. */
  counted(used: Usage): void {
    for (const [resource, amount] of used) {
      let more = amount - (this.#used.get(resource) ?? amount);
      for (const { growth } of this.#requests) {
        const expected = growth.get(resource) ?? 0n;
        const part = min(more, expected);
        if (part <= 0n) continue;
        growth.set(resource, expected - part);
        more -= part;
      }
    }
    this.#used = used;
  }

  of(resource: string): Amount {
    return sum(this.#open().map(({ growth }) => growth.get(resource) ?? 0n));
  }

  /** Those that are still to be counted. */
  #open() {
    const now = Date.now();
    return this.#requests.filter(({ growth, until }) => until > now && [...growth.values()].some((rest) => rest > 0n));
  }
}
