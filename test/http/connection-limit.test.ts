import { once } from "node:events";
import http from "node:http";
import net from "node:net";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ConnectionLimit } from "../../src/http/connection-limit";
import { type Listener, listenAt } from "../../src/http/server";

/** More than may be open without a user. */
const MANY = 1_100;
const THEIRS = "127.0.0.1";
const ADDRESSES = [THEIRS, "127.0.0.2"];
const FIRST_HALF = "GET / HTTP/1.1\r\nhost: a\r\n";
const requestOf = (user: string) => `${FIRST_HALF}user: ${user}\r\n\r\n`;

let limit: ConnectionLimit;
let listener: Listener;
let dropped: number;
/** Users whose requests are not answered until they are. */
let gates: Map<string, Promise<void>>;
let arrived: string[];
const sockets: net.Socket[] = [];

beforeEach(async () => {
  dropped = 0;
  gates = new Map();
  arrived = [];
  const limits = { max: 20, dropped: () => void dropped++ };
  limit = new ConnectionLimit(http.createServer({ keepAliveTimeout: 0 }), limits, async (request, response) => {
    const user = String(request.headers.user);
    arrived.push(user);
    await gates.get(user);
    await text(request).catch(() => {}); // its client may go
    if (user.startsWith("user")) limit.recognize(request.socket, user);
    response.end(`hello ${user}`);
  });
  listener = await listenAt(limit, { port: 0, host: "::" });
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await listener.close();
});

/** Opens a connection, which sends a text. */
async function open(sent = "", localAddress = THEIRS): Promise<net.Socket> {
  const socket = net.connect({ port: listener.port, host: "127.0.0.1", localAddress });
  sockets.push(socket.on("error", () => {})); // a reset is an end, too
  await once(socket, "connect");
  if (sent !== "") socket.write(sent);
  return socket;
}
const openMany = (sent: string, count = MANY) => Promise.all(Array.from({ length: count }, () => open(sent)));

/** What comes back until the server has answered or ended the connection. */
async function answerTo(sent: string, localAddress?: string): Promise<string> {
  return read(await open(sent, localAddress));
}
async function read(socket: net.Socket): Promise<string> {
  let received = "";
  for await (const chunk of socket.setEncoding("utf8")) {
    received += chunk;
    if (/hello user/.test(received)) break;
  }
  return received;
}
function gate(user: string): () => void {
  const { promise, resolve } = Promise.withResolvers<void>();
  gates.set(user, promise);
  return resolve;
}

describe("users at the address of strangers and at another one are answered, where strangers", () => {
  it.each([
    ["send half of their headers", FIRST_HALF],
    ["do not send their body", "POST / HTTP/1.1\r\nhost: a\r\nuser: x\r\ncontent-length: 9\r\n\r\n1"],
  ])("%s", async (_, sent) => {
    const [first] = (await openMany(sent)) as [net.Socket];
    for (const address of ADDRESSES) expect(await answerTo(requestOf("user"), address)).toContain("hello user");
    if (!first.closed) await once(first.resume(), "close"); // the oldest makes room
    expect(dropped).toBeGreaterThan(0);
  });

  it("ask again and again on new connections", async () => {
    let stops = false;
    let refused = 0;
    const strangers = Array.from({ length: 100 }, async () => {
      while (!stops) {
        const answer = await answerTo(requestOf("stranger"));
        if (!answer.includes("hello stranger")) refused++;
      }
    });
    for (const address of ADDRESSES) expect(await answerTo(requestOf("user"), address)).toContain("hello user");
    stops = true;
    await Promise.all(strangers);
    expect(refused).toBe(0);
  });

  it("are users too, and have all the connections of these", async () => {
    for (let index = 0; index < 30; index++) await once(await open(requestOf(`user ${index % 3}`)), "data");
    for (const address of ADDRESSES) expect(await answerTo(requestOf("user x"), address)).toContain("hello user x");
  });
});

describe("while all that may be open are strangers whose requests are handled", () => {
  let release: () => void;
  let known: net.Socket;
  let strangers: net.Socket[];
  beforeEach(async () => {
    release = gate("stranger");
    known = await open(requestOf("user 1"));
    await once(known, "data");
    strangers = await openMany(requestOf("stranger"), 1_024);
    await expect.poll(() => arrived.length).toBe(1 + strangers.length);
  });

  /** Until so many connections have come, and the server has had time for what they sent. */
  async function taken(count: number): Promise<void> {
    const connections = promisify(limit.server.getConnections.bind(limit.server));
    await expect.poll(() => connections()).toBe(count);
    for (let asked = 0; asked < 10; asked++) {
      known.write(requestOf("user 1"));
      await once(known, "data");
    }
  }

  it("they keep their places, and others wait until one is answered", async () => {
    const late = await open(requestOf("user"));
    await taken(1_026);
    expect(arrived).not.toContain("user");
    release();
    expect(await read(late)).toContain("hello user");
    for (const stranger of strangers) expect(await read(stranger)).toContain("hello stranger");
    expect(dropped).toBe(0);
  });

  it("they keep them until their requests are handled, though they have gone", async () => {
    for (const stranger of strangers) stranger.destroy();
    await taken(1);
    const late = await open(requestOf("user"));
    await taken(2);
    expect(arrived).not.toContain("user");
    release();
    expect(await read(late)).toContain("hello user");
  });

  it("addresses that wait take turns", async () => {
    const more = await openMany(requestOf("more"), 100);
    const other = await open(requestOf("user"), "127.0.0.2");
    await taken(1_126);
    const before = arrived.length;
    release();
    await Promise.all([...more, other].map(read));
    expect(arrived.indexOf("user") - before).toBeLessThanOrEqual(1);
  });

  it("what has gone does not wait", async () => {
    const gone = await openMany(requestOf("gone"), 100);
    await taken(1_125);
    for (const socket of gone) socket.resetAndDestroy();
    await taken(1_025);
    const late = await open(requestOf("user"));
    release();
    expect(await read(late)).toContain("hello user");
    expect(arrived).not.toContain("gone");
  });
});

it("a user's connection outlasts those of strangers, and the one that was used last those of the same user", async () => {
  const users = [];
  for (let index = 0; index < 20; index++) {
    const socket = await open(requestOf("user"));
    await once(socket, "data");
    users.push(socket);
  }
  const [first, second] = users as [net.Socket, net.Socket];
  first.write(requestOf("user"));
  await once(first, "data");
  await openMany(FIRST_HALF);
  const secondEnds = once(second.resume(), "close");
  await answerTo(requestOf("user"));
  await secondEnds;
  first.write(requestOf("user"));
  expect(await read(first)).toContain("hello user");
});

it("a stranger's connection ends with its answer, and a user's stays", async () => {
  expect(await answerTo(requestOf("stranger"))).toMatch(/connection: close/i);
  expect(await answerTo(requestOf("user"))).toMatch(/connection: keep-alive/i);
});

it("a client that has ended its side without a word is not waited for", async () => {
  const silent = await open();
  silent.end();
  expect(await read(silent)).toBe("");
});

it("ends at once whatever waits, when it closes", async () => {
  const silent = await open();
  const closed = once(silent.resume(), "close");
  await listener.close();
  await closed;
});
