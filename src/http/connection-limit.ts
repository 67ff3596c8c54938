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

/** The connections that one address may open at once beyond the kept ones, so that other clients behind the address get through. */
const SPARE = 100;

/**
 * Limits the connections of a server so that no client keeps out others. Beyond the limit, it ends the oldest connection
 * that has not been {@link recognize}d, of the address with most of these. If there is none but the new one, it ends the
 * oldest of the user with most. What an address opens too fast is ended before its handshake ({@link Arrivals}).
 */
export class ConnectionLimit {
  /** By {@link idOf}; the oldest first. */
  readonly #connections = new Map<string, Connection>();
  /** Where a connection costs a handshake: kubelet's probes come from a node's address, as others may. */
  readonly #arrivals: Arrivals | undefined;

  constructor(
    server: Server,
    private readonly limits: ConnectionLimits,
  ) {
    this.#arrivals = server instanceof tls.Server ? new Arrivals(limits.max + SPARE) : undefined;
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
    connection.identity = identity;
    const { max, perIdentity = Math.max(16, Math.ceil(max / 4)) } = this.limits;
    const own = [...this.#connections].filter(([, other]) => other.identity === identity);
    const oldest = own.length > perIdentity ? own[0]?.[0] : undefined;
    if (oldest !== undefined) this.#end(oldest);
    else this.#arrivals?.excuse(connection.address);
  }

  /** Ends all connections, whatever they carry. */
  endAll(): void {
    for (const { socket } of this.#connections.values()) socket.destroy();
  }

  #add(socket: Socket): void {
    const id = idOf(socket);
    const connection = { socket, address: socket.remoteAddress ?? "" };
    this.#connections.set(id, connection);
    if (this.#arrivals?.admit(connection.address) === false) {
      this.#end(id);
      return;
    }
    socket.once("close", () => {
      // It may have been ended here before, and another one may have come from the same port since.
      if (this.#connections.get(id) === connection) this.#connections.delete(id);
    });
    if (this.#connections.size <= this.limits.max) return;
    const stranger = this.#oldestOfMost(({ identity, address }) => (identity === undefined ? address : undefined));
    // The new one alone is given its chance.
    this.#end(
      stranger === undefined || stranger === id ? (this.#oldestOfMost(({ identity }) => identity) ?? id) : stranger,
    );
  }

  #end(id: string): void {
    this.#connections.get(id)?.socket.destroy();
    this.#connections.delete(id); // it may take a moment to close, and must not be chosen again
    this.limits.dropped?.();
  }

  /** Of those with most connections, the oldest. @param whose undefined for connections that do not count */
  #oldestOfMost(whose: (connection: Connection) => string | undefined): string | undefined {
    const byOwner = Map.groupBy(this.#connections, ([, connection]) => whose(connection));
    byOwner.delete(undefined);
    const [most = []] = [...byOwner.values()].sort((a, b) => b.length - a.length);
    return most[0]?.[0];
  }
}

/** The same for a connection and for its TLS socket. */
function idOf(socket: Socket): string {
  return `${socket.remoteAddress} ${socket.remotePort} ${socket.localPort}`;
}

/** The client of a request that is not read yet: the remote address. */
export function clientOf({ socket }: IncomingMessage): string {
  return socket?.remoteAddress ?? "";
}
