import { parseArgs } from "node:util";
import { inCluster, listenAddress } from "../config";
import { listenEarly } from "../http/early-listener";

/** Where these commands answer probes by default. */
export const PROBE_PORTS = { run: 8080, proxy: 8081 } as const;

/** In a Pod, opens the port of a command's probes, so that not even the first one fails. */
export async function openProbePort(words: readonly string[], environment: NodeJS.ProcessEnv): Promise<void> {
  const [command = "", ...args] = words;
  if (!inCluster(environment) || !(command === "run" || command === "proxy")) return;
  const options = { "http-port": { type: "string" }, "http-host": { type: "string" } } as const;
  const { values } = parseArgs({ args, options, strict: false });
  const { "http-port": port = String(PROBE_PORTS[command]), "http-host": host = listenAddress(environment) } = values;
  // The command itself refuses anything else.
  if (typeof host === "string" && /^[1-9]\d{0,4}$/.test(String(port))) await listenEarly({ port: Number(port), host });
}
