import net, { type AddressInfo } from "node:net";

/** What goes wrong between a client and PostgreSQL; all of it may be changed at any time. */
export interface PostgresFaults {
  /** Connections are reset, new ones and, at the next statement, those that are open. */
  down?: boolean;
  /** How long each statement takes at least, in milliseconds. */
  delayMs?: number;
  /** Told when the server has begun to answer a statement, before the answer is passed on; after `false` the client is cut off. */
  answered?: (statement: number) => boolean;
}

const SSL_REQUEST = 80877103;
/** The client's messages that run something: a simple query, and the execution of a prepared one. */
const STATEMENTS = new Set(["Q", "E"]);

/** A proxy before PostgreSQL that counts statements, cuts and delays. It reads what is not encrypted. */
export class PostgresProxy {
  faults: PostgresFaults = {};
  /** Since the start. */
  statements = 0;
  /** How often statements were sent after an answer to the ones before, since the start. */
  roundTrips = 0;
  /** Attempts to connect, since the start. */
  connections = 0;
  readonly #server: net.Server;
  readonly #sockets = new Set<net.Socket>();

  private constructor(target: { host: string; port: number }) {
    this.#server = net.createServer({ noDelay: true }, (client) => this.#serve(client, target));
  }

  static async start(target: { host: string; port: number }): Promise<PostgresProxy> {
    const proxy = new PostgresProxy(target);
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Cuts off all that is connected now. */
  cut(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  close(): void {
    this.cut();
    this.#server.close();
  }

  #serve(client: net.Socket, target: { host: string; port: number }): void {
    this.connections++;
    if (this.faults.down) {
      client.on("error", () => undefined);
      client.resetAndDestroy();
      return;
    }
    const server = net.connect({ ...target, noDelay: true });
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#sockets.add(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => {
        this.#sockets.delete(socket);
        other.destroy();
      });
    }
    const messages = new Messages();
    /** The number of the statement that the next answer is to, or begins with. */
    let asked: number | undefined;
    let sending: Promise<unknown> = Promise.resolve();
    let isAnswered = true;
    client.on("data", (chunk: Buffer) => {
      const found = messages.read(chunk).filter((type) => STATEMENTS.has(type)).length;
      this.statements += found;
      if (found > 0 && isAnswered) this.roundTrips++;
      if (found > 0) isAnswered = false;
      if (found > 0 && this.faults.down) {
        client.resetAndDestroy();
        return;
      }
      const { delayMs = 0 } = this.faults;
      const statement = this.statements;
      sending = sending.then(async () => {
        if (found > 0 && delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs));
        if (found > 0) asked = statement;
        server.write(chunk);
      });
    });
    server.on("data", (chunk: Buffer) => {
      isAnswered = true;
      if (asked !== undefined && this.faults.answered?.(asked) === false) {
        client.resetAndDestroy();
        return;
      }
      asked = undefined;
      client.write(chunk);
    });
  }
}

/** Finds the messages in a client's stream, however it is cut. */
class Messages {
  #rest = Buffer.alloc(0);
  #started = false;

  /** The types of the messages that are complete with this chunk, those of the start left out. */
  read(chunk: Buffer): string[] {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    const types: string[] = [];
    for (;;) {
      const head = this.#started ? 1 : 0;
      if (this.#rest.length < head + 4) return types;
      const length = head + this.#rest.readUInt32BE(head);
      if (this.#rest.length < length) return types;
      if (this.#started) types.push(String.fromCharCode(this.#rest.readUInt8(0)));
      else this.#started = this.#rest.readUInt32BE(4) !== SSL_REQUEST;
      this.#rest = this.#rest.subarray(length);
    }
  }
}
