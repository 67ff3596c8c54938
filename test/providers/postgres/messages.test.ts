import { once } from "node:events";
import { type AddressInfo, createServer, type Server } from "node:net";
import { Pool, type PoolConfig } from "pg";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { failureOf } from "../../../providers/errors";
import { classifyConnectError, classifyStatementError, MESSAGES } from "../../../providers/postgres/errors";
import { errorOf } from "../failures";

/* The driver's own words, from a server that answers as each test needs. */

const answer = (type: string, ...parts: (number | string)[]) => {
  const body = Buffer.concat(
    parts.map((part) => (typeof part === "string" ? Buffer.from(part) : Buffer.from([0, 0, 0, part]))),
  );
  const head = Buffer.from([type.charCodeAt(0), 0, 0, 0, 0]);
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
};
const WELCOME = Buffer.concat([answer("R", 0), answer("Z", "I")]);
const ASKS_FOR_PASSWORD = [answer("R", 10, "SCRAM-SHA-256\0\0"), answer("R", 11, "r=nonce")];

let server: Server;
let pool: Pool;
/** What the server answers to each message of a connection; to those after them, nothing. */
let answers: (Buffer | "end")[];

beforeEach(async () => {
  answers = [];
  server = createServer((socket) => {
    const left = [...answers];
    socket.on("error", () => {});
    socket.on("data", () => {
      const next = left.shift();
      if (next === "end") socket.destroy();
      else if (next !== undefined) socket.write(next);
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
});
afterEach(async () => {
  await pool.end();
  server.close();
});

function connect(settings: PoolConfig = {}) {
  const { port } = server.address() as AddressInfo;
  pool = new Pool({ host: "127.0.0.1", port, user: "anna", database: "app", max: 1, ...settings });
  pool.on("error", () => {});
  return pool.connect();
}

describe("the driver's words for a connection that fails", () => {
  it.each([
    ["there is no password", ASKS_FOR_PASSWORD, {}, MESSAGES.noPassword, "AuthenticationFailed"],
    ["the server has no TLS", [Buffer.from("N")], { ssl: true }, MESSAGES.noTls, "TlsFailed"],
  ])("tell that %s", async (_, answered, settings, words, reason) => {
    answers = answered;
    const error = await errorOf(connect(settings));
    expect(error.message).toMatch(words);
    expect(classifyConnectError(error).reason).toBe(reason);
  });

  it("tell that a server does not answer, or that all connections are in use", async () => {
    const silent = await errorOf(connect({ connectionTimeoutMillis: 20 }));
    await pool.end();
    answers = [WELCOME];
    const client = await connect({ connectionTimeoutMillis: 500 });
    const used = await errorOf(pool.connect());
    client.release();
    for (const error of [silent, used]) {
      expect(error.message).toMatch(MESSAGES.connectTimeout);
      expect(classifyConnectError(error).reason).toBe("ConnectionTimeout");
    }
    expect(silent.message).not.toBe(used.message);
  });
});

describe("the driver's words for a statement without an answer", () => {
  it("tell that there was none in time", async () => {
    answers = [WELCOME];
    const client = await connect({ query_timeout: 20 });
    const error = await errorOf(client.query("SELECT 1"));
    client.release(true);
    expect(error.message).toMatch(MESSAGES.statementTimeout);
    expect(failureOf(classifyStatementError(error)).reason).toBe("StatementTimeout");
  });

  it("tell that the connection was lost, before and after the client knows of that", async () => {
    answers = [WELCOME, "end"];
    const client = await connect();
    client.on("error", () => {});
    const errors = [await errorOf(client.query("SELECT 1")), await errorOf(client.query("SELECT 1"))];
    client.release(true);
    const released = await pool.connect();
    released.release(true);
    errors.push(await errorOf(released.query("SELECT 1")));
    for (const error of errors) {
      expect(error.message).toMatch(MESSAGES.lost);
      expect(failureOf(classifyStatementError(error)).reason).toBe("ConnectionLost");
    }
    expect(new Set(errors.map(({ message }) => message)).size).toBe(3);
  });
});
