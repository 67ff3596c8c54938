import type { Server, Socket } from "node:net";

interface Connection {
  socket: Socket;
  address: string;
  isRecognized: boolean;
}

/**
 * Bounds the connections of a server without letting strangers keep out users: where there are too many, the oldest
 * connection ends that has not been {@link recognize}d, of the address that has most of these. Only when all connections
 * are recognized, the new one ends.
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

  /** The client of this connection is authenticated. @param socket the connection, or what speaks TLS on it */
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

/** The same for a connection and for what speaks TLS on it. */
function idOf(socket: Socket): string {
  return `${socket.remoteAddress} ${socket.remotePort} ${socket.localPort}`;
}
