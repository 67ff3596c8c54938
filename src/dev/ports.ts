import { randomInt } from "node:crypto";
import getPort, { portNumbers } from "get-port";

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
