import { Option } from "commander";
import { inCluster } from "../config";
import { wholeNumber } from "./numbers";

export interface MetricsOptions {
  metricsPort?: number;
  metricsCertificate?: string;
}

/** How a process shows its metrics: in a Pod protected, elsewhere to this machine. */
export function metricsOptions(): Option[] {
  return [
    new Option(
      "--metrics-port <port>",
      "port of /metrics, over TLS, for accounts that may get them; without it, metrics are on --http-port, " +
        "for every local user, if that is a loopback address",
    )
      .argParser(wholeNumber)
      .default(inCluster(process.env) ? 8443 : undefined),
    new Option(
      "--metrics-certificate <folder>",
      "folder with tls.crt and tls.key (default: a new certificate at each start)",
    ),
  ];
}
