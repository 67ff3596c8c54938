import type { Server, Socket } from "node:net";

interface Connection {
  socket: Socket;
  address: string;
  isRecognized: boolean;
}

/**
 * Limits the connections of a server so that unknown clients cannot keep out users. At the limit, it ends the oldest
 * connection that has not been {@link recognize}d, of the address with most of these. If all connections are
 * recognized, it ends the new one.
 */
export class ConnectionLimit {
  readonly #max: number;
  readonly #dropped: () => void;
  /** By {@link idOf}; the oldest first. */
  readonly #connections = new Map<string, Connection>();

  /** @param dropped told of every connection that is ended */
  constructor(server: Server, max: number, dropped: () => void = () => {}) {
    this.#max = max;
    this.#dropped = dropped;
    server.on("connection", (socket: Socket) => this.#add(socket));
  }

  /** The client of this connection is authenticated. @param socket the connection, or its TLS socket */
  recognize(socket: Socket): void {
    const connection = this.#connections.get(idOf(socket));
    if (connection !== undefined) connection.isRecognized = true;
  }

  /** Ends all connections, whatever they carry. */
  endAll(): void {
    for (const { socket } of this.#connections.values()) socket.destroy();
  }

  #add(socket: Socket): void {
    const id = idOf(socket);
    this.#connections.set(id, { socket, address: socket.remoteAddress ?? "", isRecognized: false });
    socket.once("close", () => this.#connections.delete(id));
    if (this.#connections.size <= this.#max) return;
    const surplus = this.#oldestStranger() ?? id;
    this.#connections.get(surplus)?.socket.destroy();
    this.#connections.delete(surplus); // it may take a moment to close, and must not be chosen again
    this.#dropped();
  }

  #oldestStranger(): string | undefined {
    const byAddress = new Map<string, { oldest: string; count: number }>();
    for (const [id, { address, isRecognized }] of this.#connections) {
      if (isRecognized) continue;
      const { oldest = id, count = 0 } = byAddress.get(address) ?? {};
      byAddress.set(address, { oldest, count: count + 1 });
    }
    return [...byAddress.values()].sort((a, b) => b.count - a.count)[0]?.oldest;
  }
}

/** The same for a connection and for its TLS socket. */
function idOf(socket: Socket): string {
  return `${socket.remoteAddress} ${socket.remotePort} ${socket.localPort}`;
}
