import type { IncomingMessage } from "node:http";
import type { Server, Socket } from "node:net";
import tls from "node:tls";
import { Arrivals } from "./arrivals";
import { PIPELINED } from "./server";

interface Connection {
  socket: Socket;
  address: string;
  /** Of the user, once it is known. */
  identity?: string;
}

export interface ConnectionLimits {
  max: number;
  /** Of one user. Default: a quarter of all, and at least 16. */
  perIdentity?: number;
  /** Told of every connection that is ended. */
  dropped?: () => void;
}

/** An address may open so many connections at once, beyond those that the server keeps: others behind it get through. */
const SPARE = 100;

/**
 * Limits the connections of a server so that no client keeps out others. Beyond the limit, it ends the oldest connection
 * that has not been {@link recognize}d, of the address with most of these. If there is none but the new one, it ends the
 * oldest of the user with most. What an address opens too fast is ended before its handshake ({@link Arrivals}).
 */
export class ConnectionLimit {
  readonly #limits: Required<ConnectionLimits>;
  /** By {@link idOf}; the oldest first. */
  readonly #connections = new Map<string, Connection>();
  /** Of each user, the oldest first. */
  readonly #byIdentity = new Map<string, Set<string>>();
  /** Where a connection costs a handshake: kubelet's probes come from a node's address, as others may. */
  readonly #arrivals: Arrivals | undefined;

  constructor(
    server: Server,
    { max, perIdentity = Math.max(16, Math.ceil(max / 4)), dropped = () => {} }: ConnectionLimits,
  ) {
    this.#limits = { max, perIdentity, dropped };
    this.#arrivals = server instanceof tls.Server ? new Arrivals(max + SPARE) : undefined;
    server.on("connection", (socket: Socket) => this.#add(socket));
    server.on(PIPELINED, ({ remoteAddress = "" }: Socket) => this.#arrivals?.charge(remoteAddress));
  }

  /**
   * The client of this connection is known. Beyond the limit for one user, the user's oldest connection ends.
   *
   * @param socket the connection, or its TLS socket
   */
  recognize(socket: Socket, identity: string): void {
    const id = idOf(socket);
    const connection = this.#connections.get(id);
    if (connection === undefined || connection.identity === identity) return;
    this.#forgetIdentity(id, connection);
    connection.identity = identity;
    const own = this.#byIdentity.get(identity) ?? new Set();
    this.#byIdentity.set(identity, own.add(id));
    const [oldest] = own;
    if (own.size > this.#limits.perIdentity && oldest !== undefined) this.#end(oldest);
    else this.#arrivals?.excuse(connection.address);
  }

  /** Ends all connections, whatever they carry. */
  endAll(): void {
    for (const { socket } of this.#connections.values()) socket.destroy();
  }

  #add(socket: Socket): void {
    const id = idOf(socket);
    const connection = { socket, address: socket.remoteAddress ?? "" };
    if (this.#arrivals?.admit(connection.address) === false) {
      socket.destroy();
      this.#limits.dropped();
      return;
    }
    this.#connections.set(id, connection);
    socket.once("close", () => {
      // It may have been ended here before, and another one may have come from the same port since.
      if (this.#connections.get(id) === connection) this.#remove(id);
    });
    if (this.#connections.size > this.#limits.max) this.#end(this.#oldestStranger(id) ?? this.#oldestOfMost() ?? id);
  }

  #end(id: string): void {
    this.#connections.get(id)?.socket.destroy();
    this.#remove(id); // it may take a moment to close, and must not be chosen again
    this.#limits.dropped();
  }

  #remove(id: string): void {
    const connection = this.#connections.get(id);
    if (connection !== undefined) this.#forgetIdentity(id, connection);
    this.#connections.delete(id);
  }

  #forgetIdentity(id: string, { identity = "" }: Connection): void {
    const own = this.#byIdentity.get(identity);
    own?.delete(id);
    if (own?.size === 0) this.#byIdentity.delete(identity);
  }

  /** Of the address with most connections of unknown users, the oldest; the new one alone is given its chance. */
  #oldestStranger(added: string): string | undefined {
    const byAddress = new Map<string, { oldest: string; count: number }>();
    for (const [id, { address, identity }] of this.#connections) {
      if (identity !== undefined) continue;
      const { oldest = id, count = 0 } = byAddress.get(address) ?? {};
      byAddress.set(address, { oldest, count: count + 1 });
    }
    const most = [...byAddress.values()].reduce((a, b) => (b.count > a.count ? b : a), { oldest: added, count: 0 });
    return most.oldest === added ? undefined : most.oldest;
  }

  #oldestOfMost(): string | undefined {
    const users = [...this.#byIdentity.values()];
    const [oldest] = users.reduce((a, b) => (b.size > a.size ? b : a), users[0] ?? new Set<string>());
    return oldest;
  }
}

/** The same for a connection and for its TLS socket. */
function idOf(socket: Socket): string {
  return `${socket.remoteAddress} ${socket.remotePort} ${socket.localPort}`;
}

/** Who sends a request, as far as that is known before it is read: the address that it comes from. */
export function clientOf({ socket }: IncomingMessage): string {
  return socket?.remoteAddress ?? "";
}
