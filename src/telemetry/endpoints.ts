import { isIP } from "node:net";
import type { Logger } from "pino";
import type { KubernetesClient } from "../../providers/kubernetes/client";
import { CONSOLE_PATH } from "./console-paths";
import type { Metrics } from "./metrics";
import { scrapeAccess } from "./scrape-access";
import { type Console, startMetricsServer, startProbeServer } from "./server";

export interface EndpointOptions {
  httpPort: number;
  httpHost: string;
  /** Protects the metrics, on this port. */
  metricsPort?: number;
  /** A folder with `tls.crt` and `tls.key`. */
  metricsCertificate?: string;
  client: KubernetesClient;
  metrics: Pick<Metrics, "registry">;
  healthy: () => string | undefined;
  ready: () => string | undefined;
  /** Served beside the metrics, to whom the cluster lets `get` its path. */
  console?: Console;
  logger: Logger;
}

export interface Endpoints {
  /** Where they listen, for the log: `http`, and `metrics` when they have a port of their own. */
  addresses: { http: string; metrics?: string };
  close(): Promise<void>;
}

/**
 * Starts what the outside asks the process: probes for anybody, metrics for those who may read them.
 *
 * @throws TerminalError `Misconfigured` for a certificate that cannot be used
 */
export async function startEndpoints(options: EndpointOptions): Promise<Endpoints> {
  const { httpHost: host, httpPort, metricsPort, metricsCertificate, client, metrics, logger: log } = options;
  const open = metricsPort === undefined && isLoopback(host);
  const probes = await startProbeServer({
    host,
    port: httpPort,
    healthy: options.healthy,
    ready: options.ready,
    log,
    ...(open && { openMetrics: metrics, console: options.console }),
  });
  const http = `${host}:${probes.port}`;
  if (metricsPort === undefined) return { addresses: { http }, close: probes.close };
  const failed = (error: unknown) => log.warn({ err: error }, "failed to renew the certificate of the metrics");
  try {
    // Loaded here: what makes certificates takes time and memory, and only this needs it.
    const { certificateFiles, ownCertificate } = await import("./certificate.js");
    const tls = await (metricsCertificate === undefined
      ? ownCertificate({ failed })
      : certificateFiles(metricsCertificate, { failed }));
    const access = scrapeAccess({ client, log });
    const console = options.console && {
      pages: options.console,
      access: scrapeAccess({ client, log, path: CONSOLE_PATH }),
    };
    const scraped = await startMetricsServer({ host, port: metricsPort, metrics, tls, access, console, log });
    return {
      addresses: { http, metrics: `${host}:${scraped.port}` },
      async close() {
        tls.close();
        await Promise.all([probes.close(), scraped.close()]);
      },
    };
  } catch (error) {
    await probes.close(); // it would keep the process alive
    throw error;
  }
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));
}
