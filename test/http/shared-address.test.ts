import { once } from "node:events";
import net from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { ask, HOST, LISTENERS, type Served, startListeners, type TestListeners } from "./test-listeners";

/** More than may wait, and than may be open without a user. */
const MANY = 2_100;
const THEIRS = "127.0.0.1";
const ADDRESSES = [THEIRS, "127.0.0.2"];
/** The beginning of a TLS ClientHello whose rest never comes. */
const HALF_HELLO = Buffer.from([0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3, 1, 2, 3]);

let listeners: TestListeners;
const sockets: net.Socket[] = [];
beforeAll(async () => {
  listeners = await startListeners();
});
afterAll(() => listeners.close());
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});

const askAll = (served: Served) => Promise.all(ADDRESSES.map((address) => ask(served, listeners.ca, address)));

async function open(port: number, first: string | Uint8Array): Promise<void> {
  const socket = net.connect({ port, host: HOST, localAddress: THEIRS });
  sockets.push(socket.on("error", () => {})); // a reset is an end, too
  await once(socket, "connect");
  if (first.length > 0) socket.write(first);
}

describe.each(LISTENERS)("the listener of %s answers users, at the address of strangers and at another one", (name) => {
  it("where strangers come again and again, and refuses none of these a connection", async () => {
    const { [name]: served } = listeners.served;
    let stops = false;
    const refused = new Set<string>();
    const strangers = Array.from({ length: 50 }, async (_, index) => {
      for (let asked = 0; !stops; asked++) {
        await ask(served, listeners.ca, THEIRS, `invented-${index}-${asked}`).catch(({ message }: Error) =>
          refused.add(message.slice(0, 3)),
        );
      }
    });
    for (const _ of [1, 2]) await askAll(served);
    stops = true;
    await Promise.all(strangers);
    expect([...refused].filter((status) => status !== "401")).toEqual([]);
  });

  it("where more than may be open send nothing, or begin and do not go on", async () => {
    const { [name]: served } = listeners.served;
    const begun = served.secure ? HALF_HELLO : "GET / HTTP/1.1\r\n";
    await Promise.all(Array.from({ length: MANY }, (_, index) => open(served.port, index % 2 === 0 ? "" : begun)));
    await askAll(served);
  });
});
