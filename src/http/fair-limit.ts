import { FairQueue, type Item } from "../queue/fair-queue";
import { Refusal } from "./refusal";

/**
 * Limits the number of concurrent calls, fairly between clients: the calls of a client with a hundred of them wait for each
 * other, and calls of other clients do not.
 */
export class FairLimit {
  readonly #waiting = new FairQueue<Item & { client: string; begin(): void }>(({ client }) => client);
  #running = 0;
  #last = 0;

  /** @param maxWaiting of one client */
  constructor(
    private readonly max: number,
    private readonly maxWaiting = 1_000,
  ) {}

  /** @throws Refusal 429 when too much of this client waits */
  async run<T>(client: string, work: () => Promise<T>): Promise<T> {
    if (this.#running < this.max) this.#running++;
    else await this.#turn(client);
    try {
      return await work();
    } finally {
      const next = this.#waiting.take();
      if (next === undefined) this.#running--;
      else next.item.begin();
    }
  }

  async #turn(client: string): Promise<void> {
    const waiting = this.#waiting.sizeOf(client);
    if (waiting >= this.maxWaiting) {
      throw new Refusal(429, "TooManyRequests", `${waiting} requests of your address wait: try again later`);
    }
    await new Promise<void>((begin) => this.#waiting.add({ id: String(this.#last++), client, begin }));
  }
}
