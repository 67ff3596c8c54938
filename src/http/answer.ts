import type { IncomingMessage, ServerResponse } from "node:http";
import type { TProperties, TSchema } from "typebox";
import type { Validator } from "typebox/compile";
import { readJson } from "../text/json";
import type { Flight } from "./flight";
import { Refusal } from "./refusal";

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

/**
 * Reads a request's body, and no more of it than `maxBytes`.
 *
 * @param flight counts its bytes, until its caller ends that
 */
export async function readBody(request: IncomingMessage, maxBytes: number, flight?: Flight): Promise<string> {
  const tooLarge = () => new Refusal(413, "RequestEntityTooLarge", `a request has at most ${maxBytes} bytes`);
  if (Number(request.headers["content-length"] ?? 0) > maxBytes) throw tooLarge();
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    const { length } = chunk as Buffer;
    size += length;
    if (size > maxBytes) throw tooLarge();
    flight?.add(request, length);
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks).toString("utf8");
}

export function parseBody<T>(schema: Validator<TProperties, TSchema, T>, text: string, what: string): T {
  const value = readJson(text);
  if (value === undefined) throw new Refusal(400, "BadRequest", "the body is not JSON");
  if (schema.Check(value)) return value;
  const [error] = schema.Errors(value);
  throw new Refusal(400, "BadRequest", `the body is not ${what}: ${error?.instancePath || "/"} ${error?.message}`);
}
