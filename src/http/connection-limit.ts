import type http from "node:http";
import type https from "node:https";
import type { Socket } from "node:net";
import { FairQueue } from "../queue/fair-queue";

interface Connection {
  /** The same for a connection and for its TLS socket. */
  id: string;
  socket: Socket;
  address: string;
  /** Of the user, once it is known. */
  identity?: string;
  /** Without a whole answer, each with what it says of keeping the connection. */
  unanswered: Map<http.ServerResponse, boolean>;
  /** Requests whose handler has not ended; it may outlast the connection. */
  handled: number;
}

interface ConnectionLimits {
  /** Of users; beyond it, the connection used least recently ends, of the user with most. */
  max: number;
  dropped?: () => void;
}

export type RequestHandler = (request: http.IncomingMessage, response: http.ServerResponse) => Promise<void>;

/** So many connections are open whose user is not known: a handshake takes 70 KiB. */
const MAX_STRANGERS = 1_024;
const MAX_WAITING = 2_048;
/** A connection that sends nothing for so long is ended, as a handshake would be. */
const SILENCE_MS = 5_000;
/** So many connections are taken before one begins. */
const MAX_ARRIVALS = 16;
/** So many requests of one connection may be unanswered; clients of HTTP/1.1 wait for each answer. */
const MAX_UNANSWERED = 4;

/**
 * Limits the connections of a server so that no client keeps out others, whether or not they share its address: no address
 * is refused for what others behind it do.
 *
 * - A connection waits until it has sent something, and then for its turn: a handshake takes a millisecond of the event
 *   loop. One begins at a time, and addresses take turns.
 * - Strangers make room for strangers: the one that has let the server wait longest ends, at the address with most. What
 *   waits for the server stays, and ends with its answer.
 * - A {@link recognize}d connection makes room for those of users only.
 */
export class ConnectionLimit {
  /** By id. */
  readonly #open = new Map<string, Connection>();
  readonly #waiting = new Set<Connection>();
  /** Of these, the ones that have sent something. */
  readonly #queue = new FairQueue<Connection>(({ address }) => address);
  /** Begun; the oldest first. */
  readonly #strangers = new Set<Connection>();
  /** The one with the oldest request first. */
  readonly #known = new Set<Connection>();
  readonly #begin: ((socket: Socket) => void)[];
  #isScheduled = false;
  /** Turns of the event loop that each brought a connection, since the last one began. */
  #arrivals = 0;
  #hasArrived = false;

  constructor(
    readonly server: http.Server | https.Server,
    private readonly limits: ConnectionLimits,
    onRequest: RequestHandler,
  ) {
    this.#begin = server.listeners("connection") as ((socket: Socket) => void)[];
    server.removeAllListeners("connection");
    server.on("connection", (socket: Socket) => this.#add(socket));
    server.on("request", (request, response) => this.serve(response, () => onRequest(request, response)));
  }

  /**
   * Handles a request, unless too many of its connection wait: Node.js takes all that a packet holds at once, and takes one
   * new connection in the meantime.
   */
  serve(response: http.ServerResponse, handle: () => Promise<void>): void {
    const { socket } = response.req;
    const connection = this.#open.get(idOf(socket));
    if (connection === undefined || connection.unanswered.size >= MAX_UNANSWERED) {
      socket.destroy();
      return;
    }
    connection.unanswered.set(response, response.shouldKeepAlive);
    if (connection.identity === undefined) response.shouldKeepAlive = false;
    response.once("close", () => {
      if (connection.identity !== undefined) connection.unanswered.delete(response); // a stranger's connection ends now
    });
    connection.handled++;
    // By then, all that the packet holds has been counted.
    process.nextTick(async () => {
      try {
        if (!socket.destroyed) await handle();
      } finally {
        connection.handled--;
        if (connection.socket.destroyed) this.#forget(connection);
        this.#schedule();
      }
    });
  }

  recognize(socket: Socket, identity: string): void {
    const connection = this.#open.get(idOf(socket));
    if (connection === undefined) return;
    this.#strangers.delete(connection);
    this.#known.delete(connection);
    this.#known.add(connection);
    if (connection.identity === identity) return;
    connection.identity = identity;
    for (const [response, keepsAlive] of connection.unanswered) response.shouldKeepAlive = keepsAlive;
    if (this.#known.size > this.limits.max) {
      const most = ofMost(this.#known);
      this.#end(most.find(letsWait) ?? most[0]);
    }
    this.#schedule();
  }

  /** Takes no more connections; requests may continue for so long. */
  async close(graceMs: number): Promise<void> {
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()));
    for (const connection of this.#waiting) if (!this.#queue.has(connection)) connection.socket.destroy();
    const cut = setTimeout(() => {
      for (const { socket } of this.#open.values()) socket.destroy();
    }, graceMs).unref();
    await closed;
    clearTimeout(cut);
  }

  #add(socket: Socket): void {
    const address = socket.remoteAddress ?? "";
    const connection = { id: idOf(socket), socket, address, unanswered: new Map(), handled: 0 };
    this.#hasArrived = true;
    this.#open.set(connection.id, connection);
    this.#waiting.add(connection);
    socket.on("error", () => {}); // "close" follows
    socket.once("close", () => this.#forget(connection));
    const endSilent = () => this.#end(connection);
    socket.setTimeout(SILENCE_MS, endSilent);
    socket.once("readable", () => {
      socket.setTimeout(0, endSilent);
      if (socket.destroyed) return;
      if (socket.readableLength > 0) this.#queue.add(connection);
      else socket.destroy(); // its client has ended it
      this.#schedule();
    });
    if (this.#waiting.size <= MAX_WAITING) return;
    const most = ofMost(this.#waiting);
    this.#end(most.find((other) => !this.#queue.has(other)) ?? most.at(-1));
  }

  /**
   * The next connection begins when the event loop has done what else there is. Each turn takes one from the system, where
   * addresses do not take turns: several are taken for each that begins, while there is room.
   */
  #schedule(): void {
    if (this.#isScheduled || this.#queue.size === 0) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      const hasRoom = this.#waiting.size < MAX_WAITING - MAX_ARRIVALS;
      const takesMore = this.#hasArrived && hasRoom && ++this.#arrivals < MAX_ARRIVALS;
      this.#hasArrived = false;
      if (takesMore) return this.#schedule();
      this.#arrivals = 0;
      this.#beginNext();
    });
  }

  #beginNext(): void {
    if (this.#queue.size > 0 && this.#strangers.size >= MAX_STRANGERS) {
      this.#end(ofMost([...this.#strangers].filter(letsWait))[0]);
      if (this.#strangers.size >= MAX_STRANGERS) return; // until a request has been handled
    }
    const next = this.#queue.take()?.item;
    if (next === undefined) return;
    this.#waiting.delete(next);
    this.#strangers.add(next);
    for (const begin of this.#begin) begin.call(this.server, next.socket);
    this.#schedule();
  }

  #end(connection: Connection | undefined): void {
    if (connection === undefined) return;
    connection.socket.destroy();
    this.#forget(connection); // it may take a moment to close, and must not be chosen again
    this.limits.dropped?.();
  }

  /** A connection has ended. It still takes its place while a request of it is handled. */
  #forget(connection: Connection): void {
    // Another connection may have come from the same port since.
    if (this.#open.get(connection.id) === connection) this.#open.delete(connection.id);
    if (this.#waiting.delete(connection)) this.#queue.delete(connection);
    if (connection.handled > 0) return;
    this.#strangers.delete(connection);
    this.#known.delete(connection);
    this.#schedule();
  }
}

/** Whether the server waits for this client: for a handshake, or for a whole request. */
function letsWait({ socket, unanswered }: Connection): boolean {
  if (socket.destroyed) return false;
  for (const { req } of unanswered.keys()) if (req.complete) return false;
  return true;
}

/** The connections of the user, or else of the address, with most. */
function ofMost(connections: Iterable<Connection>): Connection[] {
  const byOwner = Map.groupBy(connections, ({ identity, address }) => identity ?? address);
  return [...byOwner.values()].reduce((one, other) => (other.length > one.length ? other : one), []);
}

function idOf(socket: Socket): string {
  return `${socket.remoteAddress} ${socket.remotePort} ${socket.localPort}`;
}

/** The client of a request that is not read yet: the remote address. */
export function clientOf({ socket }: http.IncomingMessage): string {
  return socket?.remoteAddress ?? "";
}
