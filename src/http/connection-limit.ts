import type { Server, Socket } from "node:net";

/**
 * Bounds the connections of a server without letting strangers keep out users: where there are too many, the oldest
 * connection ends that has not been {@link recognize}d, of the address that has most of these. Only when all connections
 * are recognized, the new one ends.
 */
export class ConnectionLimit {
  readonly #max: number;
  readonly #dropped: () => void;
  readonly #sockets = new Map<string, Socket>();
  /** Of each address, the connections that are not recognized, by id; the oldest first. */
  readonly #strangers = new Map<string, Set<string>>();

  /** @param dropped told of every connection that is ended */
  constructor(server: Server, max: number, dropped: () => void = () => {}) {
    this.#max = max;
    this.#dropped = dropped;
    server.on("connection", (socket: Socket) => this.#add(socket));
  }

  /** The client of this connection is authenticated. @param socket the connection, or what speaks TLS on it */
  recognize(socket: Socket): void {
    this.#forgetStranger(addressOf(socket), idOf(socket));
  }

  /** Ends all connections, whatever they carry. */
  endAll(): void {
    for (const socket of this.#sockets.values()) socket.destroy();
  }

  #add(socket: Socket): void {
    const [address, id] = [addressOf(socket), idOf(socket)];
    this.#sockets.set(id, socket);
    const strangers = this.#strangers.get(address) ?? new Set();
    this.#strangers.set(address, strangers.add(id));
    socket.once("close", () => {
      this.#sockets.delete(id);
      this.#forgetStranger(address, id);
    });
    if (this.#sockets.size > this.#max) this.#drop(this.#oldestStranger() ?? id);
  }

  #oldestStranger(): string | undefined {
    let most: Set<string> | undefined;
    for (const strangers of this.#strangers.values()) {
      if (most === undefined || strangers.size > most.size) most = strangers;
    }
    return most?.values().next().value;
  }

  #drop(id: string): void {
    const socket = this.#sockets.get(id);
    if (socket === undefined) return;
    // It may take a moment to close, and must not be chosen again.
    this.#sockets.delete(id);
    this.#forgetStranger(addressOf(socket), id);
    socket.destroy();
    this.#dropped();
  }

  #forgetStranger(address: string, id: string): void {
    const strangers = this.#strangers.get(address);
    if (strangers?.delete(id) && strangers.size === 0) this.#strangers.delete(address);
  }
}

/** The same for a connection and for what speaks TLS on it. */
function idOf(socket: Socket): string {
  return `${socket.remoteAddress} ${socket.remotePort} ${socket.localPort}`;
}

function addressOf(socket: Socket): string {
  return socket.remoteAddress ?? "";
}
