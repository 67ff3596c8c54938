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
      "port of /metrics, over TLS and for those whom the cluster lets read it; without it they are on --http-port, " +
        "for anybody, where that is on this machine alone",
    )
      .argParser(wholeNumber)
      .default(inCluster(process.env) ? 8443 : undefined),
    new Option(
      "--metrics-certificate <folder>",
      "folder with tls.crt and tls.key (default: one is made at each start)",
    ),
  ];
}
