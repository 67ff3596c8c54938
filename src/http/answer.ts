import type { ServerResponse } from "node:http";

export interface Answer {
  status: number;
  /** By default that of plain text or, for an object, of JSON. */
  contentType?: string;
  headers?: Record<string, string>;
  body: string | object;
}

/** How long a client may continue to send a request that was answered early. */
const LINGER_MS = 2_000;

/** Sends an answer, unless the client has gone. */
export function sendAnswer(response: ServerResponse, { status, contentType, headers, body }: Answer): void {
  if (response.destroyed) return;
  const request = response.req;
  const isText = typeof body === "string";
  const text = isText ? body : JSON.stringify(body);
  response.writeHead(status, {
    "content-type": contentType ?? (isText ? "text/plain; charset=utf-8" : "application/json"),
    "content-length": Buffer.byteLength(text),
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    ...headers,
  });
  // Node.js leaves the text out where none may be: of HEAD and of 304.
  if (request.complete) {
    response.end(text);
    return;
  }
  // What is still being sent is discarded: a connection that ends at once may take the answer with it.
  response.write(text);
  const cut = setTimeout(() => request.destroy(), LINGER_MS);
  request.resume().once("close", () => {
    clearTimeout(cut);
    response.end();
  });
}
