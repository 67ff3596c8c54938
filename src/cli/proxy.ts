import { once } from "node:events";
import { Command } from "commander";
import type { Logger } from "pino";
import { TerminalError } from "../../providers/errors";
import { KubernetesClient } from "../../providers/kubernetes/client";
import { loadKubeconfig } from "../../providers/kubernetes/kubeconfig";
import { kindName } from "../../stacks/contract/kind";
import { kinds } from "../../stacks/kinds/index";
import { listenAddress } from "../config";
import { hostPort } from "../http/server";
import { type ApiProxy, startProxy } from "../proxy/proxy";
import { type Endpoints, startEndpoints } from "../telemetry/endpoints";
import { createLogger } from "../telemetry/log";
import { readServingCertificate, type SecureContext } from "../tls/served-certificate";
import { openServingCertificate } from "../tls/serving-certificate";
import { giveBackMemoryWhenIdle } from "./heap";
import { type MetricsOptions, withMetricsOptions } from "./metrics-options";
import { positive, wholeNumber } from "./parse-options";
import { PROBE_PORTS } from "./probe-port";
import { untilInterrupted } from "./until-interrupted";
import { logWarnings } from "./warnings";

interface ProxyCommandOptions extends MetricsOptions {
  port: number;
  host: string;
  httpPort: number;
  httpHost: string;
  tlsCertFile?: string;
  tlsKeyFile?: string;
  tlsSecret: string;
  tlsNames: string[];
  clientCaFile?: string;
  userGroup: string[];
  refuseGroup: string[];
  maxConnections: number;
  gracePeriod: number;
}

/** The kind whose owners the proxy serves. */
function servedKind() {
  for (const kind of kinds) {
    const view = kind.capabilities.namespaceView;
    if (view !== undefined) return { kind, view };
  }
  throw new Error("no kind declares which namespaces its owners may list");
}

export function proxyCommand(): Command {
  const { kind, view } = servedKind();
  const command = new Command("proxy")
    .description(`run the proxy that lets owners of ${kindName(kind)} list and watch their own namespaces`)
    .option("--tls-cert-file <file>", "serving certificate, as PEM; read again when it changes")
    .option("--tls-key-file <file>", "its key")
    .option(
      "--tls-secret <namespace/name>",
      "without these files: Secret of the certificate, which the proxy creates, renews and shares with its replicas",
      "kindstack-system/kindstack-proxy-tls",
    )
    .option("--tls-names <names...>", "host names and addresses of this certificate", ["localhost", "127.0.0.1"])
    .option("--client-ca-file <file>", "CA of users' certificates (default: the one that the API server publishes)")
    .option("--port <port>", "port of the proxy", wholeNumber, 9443)
    .option("--host <address>", "listen address", listenAddress(process.env))
    .option("--http-port <port>", "port of /healthz and /readyz; 0 for any free one", wholeNumber, PROBE_PORTS.proxy)
    .option("--http-host <address>", "address of --http-port and --metrics-port", listenAddress(process.env))
    .option("--user-group <groups...>", "groups whose members see their own namespaces", [...view.userGroups])
    .option("--refuse-group <groups...>", "groups whose members are refused", ["system:masters"])
    .option("--max-connections <n>", "maximum number of connections", positive, 1000)
    .option("--grace-period <seconds>", "time for open requests after SIGTERM", wholeNumber, 20);
  return withMetricsOptions(command)
    .addHelpText(
      "after",
      `
Example:
  kindstack proxy --port 9443 --tls-names proxy.example.com

Environment:
  KUBECONFIG                           the cluster (default: ~/.kube/config, or the Pod's service account)
  KINDSTACK_LOG_LEVEL, KINDSTACK_LOG_FORMAT
                                       trace, debug, info, warn, error; json, pretty`,
    )
    .action((options: ProxyCommandOptions) => untilInterrupted((signal) => runProxy(options, signal)));
}

async function runProxy(options: ProxyCommandOptions, signal: AbortSignal): Promise<void> {
  const logger = createLogger();
  logWarnings(logger);
  const config = loadKubeconfig();
  const client = new KubernetesClient(config);
  let certificate: Awaited<ReturnType<typeof openCertificate>> | undefined;
  let proxy: ApiProxy | undefined;
  let endpoints: Endpoints | undefined;
  try {
    certificate = await openCertificate(options, client, logger);
    proxy = await startProxy({
      ...options,
      ...servedKind(),
      config,
      servingCertificate: certificate.read,
      userGroups: options.userGroup,
      refusedGroups: options.refuseGroup,
      logger,
    });
    const { metrics } = proxy;
    endpoints = await startEndpoints({ ...options, client, metrics, ready: () => proxy?.notReady, logger });
    giveBackMemoryWhenIdle();
    logger.info(
      { proxy: hostPort({ host: options.host, port: proxy.port }), ...endpoints.addresses },
      "proxy is listening",
    );
    if (!signal.aborted) await once(signal, "abort");
    logger.info("proxy is stopping");
  } finally {
    await proxy?.stop(options.gracePeriod * 1000);
    await endpoints?.close();
    certificate?.close();
    await client.close();
  }
  logger.info("proxy stopped");
}

/** The certificate of the files, if any are named, or else that of the Secret. */
async function openCertificate(
  { tlsCertFile, tlsKeyFile, tlsSecret, tlsNames }: ProxyCommandOptions,
  client: KubernetesClient,
  logger: Logger,
): Promise<{ read: () => Promise<SecureContext>; close: () => void }> {
  if (tlsCertFile !== undefined && tlsKeyFile !== undefined) {
    return { read: () => readServingCertificate(tlsCertFile, tlsKeyFile), close: () => {} };
  }
  const [namespace, name, rest] = tlsSecret.split("/");
  if (tlsCertFile !== undefined || tlsKeyFile !== undefined || !namespace || !name || rest !== undefined) {
    throw new TerminalError(
      "Misconfigured",
      "either --tls-cert-file and --tls-key-file are needed, or --tls-secret in the form namespace/name",
    );
  }
  const certificate = await openServingCertificate({ client, namespace, name, dnsNames: tlsNames, logger });
  return { read: async () => certificate.current, close: certificate.close }; // clients take the CA from the Secret itself
}
