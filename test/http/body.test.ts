import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import Type from "typebox";
import { Compile } from "typebox/compile";
import { describe, expect, it } from "vitest";
import { parseBody, readBody } from "../../src/http/answer";
import { Flight } from "../../src/http/flight";

const schema = Compile(Type.Object({ name: Type.String() }));

function request(chunks: string[], headers: Record<string, string> = {}): IncomingMessage {
  return Object.assign(Readable.from(chunks.map((chunk) => Buffer.from(chunk))), {
    headers,
  }) as IncomingMessage;
}

const from = (remoteAddress: string, facts: object = {}) =>
  Object.assign(request([]), { socket: { remoteAddress }, ...facts }).on("error", () => {});

describe("a body", () => {
  it("is read whole, and counts until its bytes are no longer needed", async () => {
    const flight = new Flight(10);
    const one = request(["ab", "cd"]);
    expect(await readBody(one, 4, flight)).toBe("abcd");
    flight.end(one);
    flight.add(request([]), 10);
  });

  it("is refused when it is too large, as it says or as it turns out", async () => {
    const refusal = { code: 413, message: "a request has at most 3 bytes" };
    await expect(readBody(request(["a"], { "content-length": "4" }), 3)).rejects.toMatchObject(refusal);
    await expect(readBody(request(["ab", "cd"]), 3)).rejects.toMatchObject(refusal);
  });

  it("makes room when it has been read for longest, of the client with most bytes", () => {
    const flight = new Flight(10);
    const [first, second, other, good] = [from("a"), from("a"), from("b"), from("a")];
    flight.add(first, 3);
    flight.add(other, 3);
    flight.add(second, 3);
    flight.add(first, 1);
    flight.add(good, 4);
    expect([first, second, other, good].map(({ destroyed }) => destroyed)).toEqual([true, false, false, false]);
  });

  it("stays when it is read and waits for its turn", () => {
    const flight = new Flight(10);
    const [whole, good] = [from("a", { complete: true }), from("a")];
    flight.add(whole, 8);
    expect(() => flight.add(good, 3)).toThrow("too many bytes are being read");
    expect(whole.destroyed).toBe(false);
    flight.end(whole);
    flight.add(good, 10);
  });

  it("is parsed by its schema, or refused with the place that is wrong", () => {
    expect(parseBody(schema, '{"name":"a"}', "a name")).toEqual({ name: "a" });
    expect(() => parseBody(schema, "{", "a name")).toThrow("the body is not JSON");
    expect(() => parseBody(schema, '{"name":1}', "a name")).toThrow("the body is not a name: /name must be string");
    expect(() => parseBody(schema, "[]", "a name")).toThrow("the body is not a name: / must be object");
  });
});
