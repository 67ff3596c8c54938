import { once } from "node:events";
import http from "node:http";
import net from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { expect, it } from "vitest";
import { freePort } from "../../src/dev/ports";
import { ConnectionLimit } from "../../src/http/connection-limit";
import { listenEarly } from "../../src/http/early-listener";
import { listenAt } from "../../src/http/server";

const host = "127.0.0.1";

const get = (port: number, path: string) =>
  fetch(`http://${host}:${port}${path}`, { headers: { connection: "close" } });
const echo = () =>
  new ConnectionLimit(http.createServer(), { max: 10 }, async (request, response) => {
    response.end(`you asked for ${request.url}`);
  });

it("lets clients wait until the server is there, and serves those who come later", async () => {
  const port = await freePort();
  await listenEarly({ port, host });
  const early = get(port, "/early");
  const other = net.connect(port, host);
  await once(other, "connect");
  other.destroy(); // gave up waiting
  await delay(50); // both have been accepted

  const { port: served, close } = await listenAt(echo(), { port, host });
  expect(served).toBe(port);
  expect(await (await early).text()).toBe("you asked for /early");
  expect(await (await get(port, "/later")).text()).toBe("you asked for /later");
  await close();
  await expect(get(port, "/")).rejects.toThrow();
});

it("leaves other addresses alone, and an address that is in use to the server that reports it", async () => {
  const [port, another] = [await freePort(), await freePort()];
  await listenEarly({ port, host });
  const { close } = await listenAt(echo(), { port: another, host });
  await close();
  const { close: closePort } = await listenAt(echo(), { port, host });
  await listenEarly({ port, host });
  await expect(listenAt(echo(), { port, host })).rejects.toThrow("EADDRINUSE");
  await closePort();
});
