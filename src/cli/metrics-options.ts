import type { Command } from "commander";
import { inCluster } from "../config";
import { wholeNumber } from "./parse-options";

/** How a process shows its metrics: in a Pod protected, elsewhere to this machine. */
export interface MetricsOptions {
  metricsPort?: number;
  metricsCertificate?: string;
}

export function withMetricsOptions(command: Command): Command {
  return command
    .option(
      "--metrics-port <port>",
      "port of /metrics, over TLS, for accounts that may get them; without it, metrics are on --http-port, " +
        "for every local user, if that is a loopback address",
      wholeNumber,
      inCluster(process.env) ? 8443 : undefined,
    )
    .option(
      "--metrics-certificate <folder>",
      "folder with tls.crt and tls.key (default: a new certificate at each start)",
    );
}
