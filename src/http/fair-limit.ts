import { FairQueue, type Item } from "../queue/fair-queue";

/**
 * Limits the number of concurrent calls, fairly between clients: the calls of a client with a hundred of them wait for each
 * other, and calls of other clients do not.
 */
export class FairLimit {
  readonly #waiting = new FairQueue<Item & { client: string; begin(): void }>(({ client }) => client);
  #running = 0;
  #last = 0;

  constructor(private readonly max: number) {}

  async run<T>(client: string, work: () => Promise<T>): Promise<T> {
    if (this.#running < this.max) this.#running++;
    else await new Promise<void>((begin) => this.#waiting.add({ id: String(this.#last++), client, begin }));
    try {
      return await work();
    } finally {
      const next = this.#waiting.take();
      if (next === undefined) this.#running--;
      else next.item.begin();
    }
  }
}
