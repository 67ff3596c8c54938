import { once } from "node:events";
import http from "node:http";
import net from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as delay, setImmediate } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readBody, sendAnswer } from "../../src/http/answer";
import { ConnectionLimit, type RequestHandler } from "../../src/http/connection-limit";
import type { Refusal } from "../../src/http/refusal";
import { hostPort, type Listener, listenAt } from "../../src/http/server";

let listener: Listener;
let socket: net.Socket;
let received: string;

/** A server whose clients are all known, so that they may keep their connections. */
function ofUsers(onRequest: RequestHandler): ConnectionLimit {
  const limit = new ConnectionLimit(http.createServer(), { max: 100 }, (request, response) => {
    limit.recognize(request.socket, "user");
    return onRequest(request, response);
  });
  return limit;
}

beforeEach(async () => {
  const server = ofUsers(async (request, response) => {
    const answer = await readBody(request, 4).then(
      (body) => ({ status: 200, body: { body } }),
      (error: Refusal) => ({ status: error.code, body: "no\n" }),
    );
    sendAnswer(response, answer);
  });
  listener = await listenAt(server, { port: 0, host: "127.0.0.1" });
  socket = net.connect(listener.port, "127.0.0.1");
  received = "";
  socket.setEncoding("utf8").on("data", (chunk: string) => {
    received += chunk;
  });
  socket.on("error", () => {}); // a reset is an end, too
  await once(socket, "connect");
});
afterEach(async () => {
  socket.destroy();
  await listener.close();
});

const post = "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n";
const answers = async (count: number) => {
  while (received.split("HTTP/1.1 ").length <= count || !/\}|no\n$/.test(received)) await once(socket, "data");
  return received.split("HTTP/1.1 ").slice(1);
};

describe("an answer", () => {
  it("is JSON for an object, and text otherwise", async () => {
    socket.write(`${post}2\r\nab\r\n0\r\n\r\n`);
    expect((await answers(1))[0]).toMatch(/^200 OK\r\ncontent-type: application\/json\r\n.*\r\n\r\n\{"body":"ab"\}$/s);
    socket.write(`${post}5\r\nabcde\r\n0\r\n\r\n`);
    expect((await answers(2))[1]).toMatch(/^413 Payload Too Large\r\ncontent-type: text\/plain.*\r\n\r\nno\n$/s);
  });

  it("that comes before the request's end lets it end: another may follow", async () => {
    socket.write(`${post}5\r\nabcde\r\n`);
    await answers(1);
    socket.write(`${"5\r\nabcde\r\n".repeat(10_000)}0\r\n\r\n${post}0\r\n\r\n`);
    expect((await answers(2)).map((answer) => answer.slice(0, 3))).toEqual(["413", "200"]);
  });

  it("that comes before the request's end reaches a stranger, whose connection ends", async () => {
    const limit = new ConnectionLimit(http.createServer(), { max: 1 }, async (_request, response) =>
      sendAnswer(response, { status: 401, body: "who are you?" }),
    );
    const { port, close } = await listenAt(limit, { port: 0, host: "127.0.0.1" });
    const client = net.connect(port, "127.0.0.1");
    const answer = text(client);
    client.write(post);
    for (let sent = 0; sent < 100; sent++) {
      if (!client.write(`${(1 << 16).toString(16)}\r\n${"x".repeat(1 << 16)}\r\n`)) await once(client, "drain");
    }
    client.write("0\r\n\r\n");
    expect(await answer).toMatch(/^HTTP\/1\.1 401 .*connection: close.*who are you\?$/is);
    await close();
  });

  it("does not wait for that end for ever", async () => {
    socket.write(`${post}5\r\nabcde\r\n`);
    await answers(1);
    const started = performance.now();
    await once(socket, "close");
    expect(performance.now() - started).toBeGreaterThan(1_000);
  });
});

it("a listener on :: is reached by both families", async () => {
  const both = await listenAt(
    ofUsers(async () => {}),
    { port: 0, host: "::" },
  );
  try {
    for (const host of ["127.0.0.1", "::1"]) {
      const client = net.connect(both.port, host);
      await once(client, "connect");
      client.destroy();
    }
  } finally {
    await both.close();
  }
});

describe("a listener that closes in good time", () => {
  /** Posts on a kept connection until an error comes, and tells of answers. @returns the error's code */
  async function post(agent: http.Agent, port: number, answered: () => void): Promise<string> {
    for (;;) {
      const code = await new Promise<string | undefined>((resolve) => {
        const request = http.request({ agent, port, host: "127.0.0.1", method: "POST" }, (response) =>
          response.resume().once("end", () => resolve(undefined)),
        );
        request.once("error", (error: NodeJS.ErrnoException) => resolve(error.code)).end("x");
      });
      if (code !== undefined) return code;
      answered();
      await delay(5);
    }
  }

  it("waits for requests that came while the process stalled", async () => {
    const server = ofUsers(async (_request, response) => void response.end("ok"));
    const { port, close } = await listenAt(server, { port: 0, host: "127.0.0.1" }, 5_000);
    const client = net.connect(port, "127.0.0.1");
    let received = "";
    client.setEncoding("utf8").on("data", (text: string) => {
      received += text;
    });
    const request = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";
    client.write(request);
    await once(client, "data");
    const closed = close();
    await delay(50);
    await setImmediate(); // from here, timers come before what is received
    client.write(request);
    const end = performance.now() + 700;
    while (performance.now() < end);
    await once(client, "close");
    expect(received.split("HTTP/1.1 200").length - 1).toBe(2);
    await closed;
  });

  it("breaks no request of clients that keep their connections", async () => {
    const server = ofUsers(async (request, response) => {
      request.resume().once("end", () => response.end("ok"));
    });
    const { port, close } = await listenAt(server, { port: 0, host: "127.0.0.1" }, 5_000);
    const agent = new http.Agent({ keepAlive: true });
    const clients = Array.from({ length: 20 }, () => {
      const { promise: connected, resolve } = Promise.withResolvers<void>();
      return { connected, code: post(agent, port, resolve) };
    });
    // The system resets what it has accepted for a listener that closes before it has.
    await Promise.all(clients.map(({ connected }) => connected));
    // As the nodes do that have learned that this is no endpoint any more, nothing connects anew.
    const connect = agent.createConnection.bind(agent);
    agent.createConnection = (options, callback) => connect({ ...options, port: 1 }, callback);
    await close();
    expect(new Set(await Promise.all(clients.map(({ code }) => code)))).toEqual(new Set(["ECONNREFUSED"]));
    agent.destroy();
  });
});

it.each([
  ["127.0.0.1", "127.0.0.1:80"],
  ["::", "[::]:80"],
  ["localhost", "localhost:80"],
])("an address of %s stands in a URL as %s", (host, expected) => {
  expect(hostPort({ host, port: 80 })).toBe(expected);
});
