import { isIP } from "node:net";

/** Whether a host, as it is written alone or in a URL, is this machine. */
export function isLoopback(host: string): boolean {
  return ["localhost", "::1", "[::1]"].includes(host) || (isIP(host) === 4 && host.startsWith("127."));
}
