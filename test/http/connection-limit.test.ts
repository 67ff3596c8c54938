import { EventEmitter, once } from "node:events";
import http from "node:http";
import net from "node:net";
import tls from "node:tls";
import { afterEach, expect, it, vi } from "vitest";
import { ConnectionLimit } from "../../src/http/connection-limit";
import { listenAt, PIPELINED, withoutPipelines } from "../../src/http/server";

const connection = (remoteAddress: string) => Object.assign(new EventEmitter(), { remoteAddress, destroy: vi.fn() });

afterEach(() => void vi.useRealTimers());

it("each request that did not wait for answers counts as a connection of its address", () => {
  vi.useFakeTimers({ toFake: ["performance"] }); // an address may have more as time passes
  const server: tls.Server = Object.create(tls.Server.prototype); // its events alone, without handshakes
  const dropped = vi.fn();
  new ConnectionLimit(server, { max: 10, dropped });
  for (let request = 0; request < 1_000; request++) server.emit(PIPELINED, connection("10.0.0.1"));
  const [theirs, another] = [connection("10.0.0.1"), connection("10.0.0.2")];
  server.emit("connection", theirs);
  server.emit("connection", another);
  expect(theirs.destroy).toHaveBeenCalledOnce();
  expect(another.destroy).not.toHaveBeenCalled();
  expect(dropped).toHaveBeenCalledOnce();
});

it("a server tells of the requests that did not wait, and of no others", async () => {
  const server = http.createServer(withoutPipelines((_request, response) => response.end()));
  const addresses: unknown[] = [];
  server.on(PIPELINED, ({ remoteAddress }: net.Socket) => addresses.push(remoteAddress));
  const listener = await listenAt(server, { port: 0, host: "127.0.0.1" });
  const open = () => net.connect(listener.port, "127.0.0.1").on("error", () => {}); // a reset is an end, too
  const request = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";

  const patient = open();
  for (let count = 0; count < 10; count++) {
    patient.write(request);
    await once(patient, "data");
  }
  patient.destroy();
  expect(addresses).toEqual([]);

  const hasty = open();
  hasty.write(request.repeat(50));
  await new Promise((closed) => hasty.once("close", closed).resume());
  expect(addresses.length).toBeGreaterThan(20);
  expect(new Set(addresses)).toEqual(new Set(["127.0.0.1"]));
  await listener.close();
});
