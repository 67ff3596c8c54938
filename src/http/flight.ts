/** The bytes of bodies that are being read at the same time. No client may have all of them. */
export class Flight {
  #bytes = 0;
  readonly #byClient = new Map<string, number>();

  /** @param maxPerClient by default, one client may have all */
  constructor(
    private readonly max: number,
    private readonly maxPerClient = max,
  ) {}

  /** Adds bytes of a client. @returns whether they are within the limits */
  begin(client: string, bytes: number): boolean {
    const own = (this.#byClient.get(client) ?? 0) + bytes;
    this.#bytes += bytes;
    this.#byClient.set(client, own);
    return this.#bytes <= this.max && own <= this.maxPerClient;
  }

  end(client: string, bytes: number): void {
    const own = (this.#byClient.get(client) ?? 0) - bytes;
    this.#bytes -= bytes;
    if (own > 0) this.#byClient.set(client, own);
    else this.#byClient.delete(client);
  }
}
