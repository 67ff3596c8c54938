import { once } from "node:events";
import net from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Listener } from "../../src/http/server";
import { listen } from "../../src/telemetry/endpoints";

let server: Listener;
const sockets: net.Socket[] = [];

beforeEach(async () => {
  server = await listen({
    port: 0,
    host: "127.0.0.1",
    respond: async () => ({ status: 200, body: "ok" }),
    logger: { warn() {} },
  });
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await server.close();
});

/** Sends a text over a connection of its own, and gives all that comes back until the server ends it. */
function converse(text: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = net.connect(server.port, "127.0.0.1");
    sockets.push(socket);
    let answer = "";
    socket.setEncoding("utf8").on("data", (chunk: string) => {
      answer += chunk;
    });
    socket.on("error", () => {}); // a reset is an end, too
    socket.on("close", () => resolve(answer));
    if (text !== "") socket.write(text);
  });
}
const CLOSING = "GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
const statusOf = (answer: string) => Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1]);

describe("a listener", () => {
  it("answers a request", async () => {
    expect(statusOf(await converse(CLOSING))).toBe(200);
  });

  it("refuses headers of more than 16 KiB, and addresses as long", async () => {
    const long = "x".repeat(17 * 1024);
    const all = await Promise.all([
      converse(`GET / HTTP/1.1\r\nhost: a\r\nx-long: ${long}\r\n\r\n`),
      converse(`GET /${long} HTTP/1.1\r\nhost: a\r\n\r\n`),
    ]);
    expect(all.map(statusOf)).toEqual([431, 431]);
  });

  it("refuses a body without waiting for it", async () => {
    const all = await Promise.all([
      converse("GET / HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000000\r\n\r\nx"),
      converse("GET / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n"),
      converse("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000000\r\n\r\nx"),
    ]);
    expect(all.map(statusOf)).toEqual([413, 413, 405]);
  });

  it("ends connections that are slow to say what they want, or say nothing", async () => {
    const all = await Promise.all([converse(""), converse("GET / HTTP/1.1\r\nhost: a\r\nx-slow: ")]);
    expect(all.map(statusOf)).toEqual([Number.NaN, 408]);
  });

  it("ends a connection that sends many requests without waiting for answers", async () => {
    const request = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";
    const socket = net.connect(server.port, "127.0.0.1");
    sockets.push(socket);
    let received = "";
    socket.on("data", (chunk) => {
      received += chunk;
    });
    socket.on("error", () => {});
    socket.write(request.repeat(1_000));
    await once(socket, "close");
    expect(received.split("HTTP/1.1").length - 1).toBeLessThan(10);
    for (let asked = 0; asked < 20; asked++) expect((await fetch(`http://127.0.0.1:${server.port}/`)).status).toBe(200);
  });

  it("is not upset by what is no HTTP", async () => {
    expect(statusOf(await converse("\u0016\u0003\u0001\u0000 nonsense\r\n\r\n"))).toBe(400);
    expect(statusOf(await converse(CLOSING))).toBe(200);
  });

  it("says nothing of an error but that there was one", async () => {
    const failures: unknown[] = [];
    await server.close();
    server = await listen({
      port: 0,
      host: "127.0.0.1",
      respond: () => Promise.reject(new Error("postgres://user:password@host")),
      logger: { warn: (fields: unknown) => failures.push(fields) },
    });
    const answer = await converse(CLOSING);
    expect(answer).toMatch(/^HTTP\/1\.1 500 /);
    expect(answer).not.toContain("password");
    expect(failures).toHaveLength(1);
  });
});
