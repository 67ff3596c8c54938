import { randomInt } from "node:crypto";
import fs from "node:fs";
import { createServer } from "node:net";
import getPort, { portNumbers } from "get-port";
import { readJson } from "../text/json";
import type { Layout } from "./layout";

const FIRST = 20_000;
const LAST = 29_999;
const SPAN = 500;

/**
 * A free port of 127.0.0.1. It is below the range of outgoing connections: until the port is used, the API server alone
 * opens dozens of those.
 */
export function freePort(): Promise<number> {
  const first = randomInt(FIRST, LAST - SPAN);
  return getPort({ host: "127.0.0.1", port: portNumbers(first, first + SPAN) });
}

/**
 * The remembered port of a cluster's component, if it is free: bookmarks and shells stay valid. Otherwise a new port, which is
 * remembered.
 */
export async function portOf(layout: Layout, component: string): Promise<number> {
  const before = rememberedPorts(layout)[component];
  if (before !== undefined && (await isFree(before))) return before;
  const port = await freePort();
  // Read again: others may have been remembered in the meantime.
  const ports = { ...rememberedPorts(layout), [component]: port };
  fs.writeFileSync(layout.ports, `${JSON.stringify(ports, undefined, 2)}\n`, { mode: 0o600 });
  return port;
}

/** Not asked of get-port, which keeps a port back for a while after it was used. */
function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer().once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}

function rememberedPorts(layout: Layout): Partial<Record<string, number>> {
  if (!fs.existsSync(layout.ports)) return {};
  const ports = readJson(fs.readFileSync(layout.ports, "utf8")) as Record<string, number> | undefined;
  return ports ?? {}; // damaged; others are as good
}
