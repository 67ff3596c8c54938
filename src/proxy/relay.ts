import type { ClientRequest, IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { sendAnswer } from "../http/answer";
import { Refusal } from "../http/refusal";
import { hasBody, withoutHopByHop } from "./headers";

/** Ends an answer early but cleanly; with `last`, as for a watch whose client must list again. */
export type EndAnswer = (last?: Refusal) => void;

const NEWLINE = 0x0a;

/** What the API server answered: whole, or as another protocol on the same connection. */
type Relayed =
  | { type: "response"; message: IncomingMessage }
  | { type: "upgrade"; message: IncomingMessage; socket: Duplex; head: Buffer };

/**
 * Sends the body of the client's request, or what was read of it before, and waits for what comes back. The request ends when
 * its client goes away, or has gone.
 *
 * @throws Refusal 503 when the API server does not answer
 */
export function answerOf(
  upstream: ClientRequest,
  request: IncomingMessage,
  response: ServerResponse,
  body?: Buffer,
): Promise<Relayed> {
  return new Promise((resolve, reject) => {
    upstream.once("response", (message) => resolve({ type: "response", message }));
    upstream.once("upgrade", (message, socket, head) => resolve({ type: "upgrade", message, socket, head }));
    // The listener stays: an error after the answer has begun shows in the answer.
    upstream.on("error", () =>
      reject(new Refusal(503, "ServiceUnavailable", "the API server does not answer: try again later")),
    );
    response.once("close", () => upstream.destroy());
    if (response.destroyed) upstream.destroy();
    else if (body !== undefined) upstream.end(body);
    else if (hasBody(request.headersDistinct)) request.pipe(upstream);
    else upstream.end();
  });
}

/** Forwards an answer as it arrives. A truncated answer is truncated for the client, too: it must not look complete. */
export function relay(message: IncomingMessage, response: ServerResponse): EndAnswer {
  response.writeHead(message.statusCode ?? 502, message.statusMessage, withoutHopByHop(message.headersDistinct));
  response.flushHeaders(); // a watch may have nothing to say for a long time
  const isEvents =
    /^application\/json\b/.test(message.headers["content-type"] ?? "") && !message.headers["content-encoding"];
  let ended = false;
  let lastByte = NEWLINE;
  message.on("data", (chunk: Buffer) => {
    lastByte = chunk.at(-1) ?? lastByte;
  });
  message.on("error", () => {}); // "close" follows
  message.once("close", () => {
    if (!message.complete && !ended) response.destroy();
  });
  response.once("close", () => message.destroy());
  message.pipe(response);
  return (last) => {
    if (ended || response.writableEnded) return;
    ended = true;
    message.unpipe(response);
    message.destroy();
    // In the middle of an event, nothing can be added.
    if (last !== undefined && isEvents && lastByte === NEWLINE) {
      response.write(`${JSON.stringify({ type: "ERROR", object: last.status })}\n`);
    }
    response.end();
  };
}

/** Joins two connections that speak a protocol of their own from now on, after the answer that says so. */
export function join(client: Duplex, clientHead: Buffer, answer: Relayed & { type: "upgrade" }): void {
  const { message, socket, head } = answer;
  const lines = [`HTTP/1.1 ${message.statusCode} ${message.statusMessage}`];
  for (let i = 0; i < message.rawHeaders.length; i += 2)
    lines.push(`${message.rawHeaders[i]}: ${message.rawHeaders[i + 1]}`);
  client.write(`${lines.join("\r\n")}\r\n\r\n`, "latin1");
  client.write(head);
  socket.write(clientHead);
  for (const [from, to] of [
    [client, socket],
    [socket, client],
  ] as const) {
    from.on("error", () => {}); // "close" follows
    from.once("close", () => to.destroy());
    from.pipe(to);
  }
}

/** Answers with the refusal; anything else is a fault of the proxy, whose details are not disclosed. */
export function refuse(response: ServerResponse, error: unknown): void {
  const refusal =
    error instanceof Refusal ? error : new Refusal(500, "InternalError", "the proxy failed to answer this request");
  sendAnswer(response, {
    status: refusal.code,
    headers: {
      "cache-control": "no-cache, private",
      // A body that was sent along may never have been read, and would be taken for the next request.
      connection: "close",
      ...(refusal.code === 503 && { "retry-after": "1" }),
    },
    body: refusal.status,
  });
}
