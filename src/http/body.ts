import type { IncomingMessage } from "node:http";
import type { TProperties, TSchema } from "typebox";
import type { Validator } from "typebox/compile";
import { readJson } from "../text/json";
import type { Flight } from "./flight";
import { Refusal } from "./refusal";

/**
 * Reads a request's body, and no more of it than `maxBytes`.
 *
 * @param flight counts its bytes, until its caller ends that
 * @throws Refusal 413 for a larger one, 503 when too much is being read at the same time
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

/**
 * Parses a body of JSON.
 *
 * @param what it should be, for the message
 * @throws Refusal 400 saying where it is wrong
 */
export function parseBody<T>(schema: Validator<TProperties, TSchema, T>, text: string, what: string): T {
  const value = readJson(text);
  if (value === undefined) throw new Refusal(400, "BadRequest", "the body is not JSON");
  if (schema.Check(value)) return value;
  const [error] = schema.Errors(value);
  throw new Refusal(400, "BadRequest", `the body is not ${what}: ${error?.instancePath || "/"} ${error?.message}`);
}
