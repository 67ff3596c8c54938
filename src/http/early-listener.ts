import { once } from "node:events";
import type http from "node:http";
import net from "node:net";

export interface Address {
  /** 0 for any free port. */
  port: number;
  host: string;
}

/**
 * The number of connections that wait to be accepted, where the system allows it. The system drops further connections, and
 * their clients try again after 1, 3 and 7 seconds. With Node.js' 511, a thousand connections would cause such waits.
 */
export const BACKLOG = 4_096;

let early: (Address & { server: net.Server; sockets: net.Socket[] }) | undefined;

/**
 * Opens a port before the program is loaded that will serve it. Loading takes half a second of a core, and much longer on a
 * busy node: until then, clients wait, where they would be refused.
 */
export async function listenEarly({ port, host }: Address): Promise<void> {
  const sockets: net.Socket[] = [];
  const server = net.createServer({ pauseOnConnect: true }, (socket) => {
    socket.on("error", () => socket.destroy());
    sockets.push(socket);
  });
  const listening = once(server, "listening");
  server.listen({ port, host, backlog: BACKLOG }).unref();
  try {
    await listening;
    early = { port, host, server, sockets };
  } catch {} // the server that is to listen there says what is wrong
}

/** Lets a server take over the port of its address, with those who wait. Says whether that is open. */
export function takeOver(server: net.Server | http.Server, { port, host }: Address): boolean {
  if (early?.port !== port || early.host !== host) return false;
  const { server: former, sockets } = early;
  early = undefined;
  server.listen(former).ref();
  for (const socket of sockets) {
    server.emit("connection", socket);
    socket.resume();
  }
  return true;
}
