import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import Type from "typebox";
import { Compile } from "typebox/compile";
import { describe, expect, it } from "vitest";
import { parseBody, readBody } from "../../src/http/body";
import { Flight } from "../../src/http/flight";

const schema = Compile(Type.Object({ name: Type.String() }));

function request(chunks: string[], headers: Record<string, string> = {}): IncomingMessage {
  return Object.assign(Readable.from(chunks.map((chunk) => Buffer.from(chunk))), {
    headers,
  }) as unknown as IncomingMessage;
}

describe("a body", () => {
  it("is read whole, and gives back what it took of the bytes in flight", async () => {
    const flight = new Flight(10);
    expect(await readBody(request(["ab", "cd"]), 4, flight)).toBe("abcd");
    expect(flight.begin("another client", 10)).toBe(true);
  });

  it("is refused when it is too large, as it says or as it turns out", async () => {
    const refusal = { code: 413, message: "a request has at most 3 bytes" };
    await expect(readBody(request(["a"], { "content-length": "4" }), 3)).rejects.toMatchObject(refusal);
    await expect(readBody(request(["ab", "cd"]), 3)).rejects.toMatchObject(refusal);
  });

  it("is refused while too much is being read, and gives back what it took", async () => {
    const flight = new Flight(10);
    flight.begin("another client", 8);
    await expect(readBody(request(["ab", "c"]), 100, flight)).rejects.toMatchObject({ code: 503 });
    expect(flight.begin("another client", 2)).toBe(true);
  });

  it("is refused while its client has much being read, and others are served", async () => {
    const flight = new Flight(10, 4);
    flight.begin("", 3);
    await expect(readBody(request(["ab"]), 100, flight)).rejects.toMatchObject({ code: 503 });
    expect(flight.begin("another client", 4)).toBe(true);
  });

  it("is parsed by its schema, or refused with the place that is wrong", () => {
    expect(parseBody(schema, '{"name":"a"}', "a name")).toEqual({ name: "a" });
    expect(() => parseBody(schema, "{", "a name")).toThrow("the body is not JSON");
    expect(() => parseBody(schema, '{"name":1}', "a name")).toThrow("the body is not a name: /name must be string");
    expect(() => parseBody(schema, "[]", "a name")).toThrow("the body is not a name: / must be object");
  });
});
