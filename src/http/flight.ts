import type { IncomingMessage } from "node:http";
import { clientOf } from "./connection-limit";
import { Refusal } from "./refusal";

/**
 * Limits the bytes of bodies that are read or wait for their turn. Beyond the limit, the body ends that has been read for
 * longest, of the client with most bytes: slow ones make room for others, whether or not they share an address.
 */
export class Flight {
  /** By request, the oldest first. */
  readonly #bytes = new Map<IncomingMessage, number>();
  #sum = 0;

  constructor(private readonly max: number) {}

  /** @throws Refusal 503 when it is this request that makes room */
  add(request: IncomingMessage, bytes: number): void {
    this.#bytes.set(request, (this.#bytes.get(request) ?? 0) + bytes);
    this.#sum += bytes;
    while (this.#sum > this.max) {
      const slow = this.#slowOfMost() ?? request;
      this.end(slow);
      const refusal = new Refusal(503, "ServiceUnavailable", "too many bytes are being read; try again");
      if (slow === request) throw refusal;
      slow.destroy(refusal);
    }
  }

  /** The bytes of a request are no longer needed. */
  end(request: IncomingMessage): void {
    this.#sum -= this.#bytes.get(request) ?? 0;
    this.#bytes.delete(request);
  }

  #slowOfMost(): IncomingMessage | undefined {
    const ofClients = [...Map.groupBy(this.#bytes, ([request]) => clientOf(request)).values()];
    const most = ofClients.map((own) => ({ own, bytes: own.reduce((sum, [, bytes]) => sum + bytes, 0) }));
    most.sort((one, other) => other.bytes - one.bytes);
    return most[0]?.own.find(([{ complete }]) => !complete)?.[0];
  }
}
