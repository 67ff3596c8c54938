import { availableParallelism } from "node:os";
import { Command, InvalidArgumentError, Option } from "commander";
import { ProviderHost } from "../../providers/host/server";
import { providers } from "../../providers/index";
import { connectKubernetes, disconnectKubernetes } from "../../providers/kubernetes/connection";
import { closePool } from "../../providers/postgres/pool";
import { kinds } from "../../stacks/index";
import { StackEngine } from "../automation/engine";
import { openWorkspace } from "../automation/workspace";
import { inCluster, readStateConfig } from "../config";
import { type Endpoints, startEndpoints } from "../telemetry/endpoints";
import { createLogger } from "../telemetry/log";
import { createMetrics } from "../telemetry/metrics";
import { resolveBinary } from "../toolchain/resolve";
import { installKinds } from "../watcher/install";
import { Operator } from "../watcher/operator";
import { EventRecorder } from "../watcher/recorder";

interface RunOptions {
  installCrds: boolean;
  httpPort: number;
  httpHost: string;
  metricsPort?: number;
  metricsCertificate?: string;
  concurrency: number;
  updateTimeout: number;
  driftInterval: number;
  gracePeriod: number;
}

export function runCommand(): Command {
  return new Command("run")
    .description("run the operator against the current kubeconfig or, in a Pod, with its service account")
    .option("--install-crds", "apply the CRDs of all kinds first", false)
    .option("--http-port <port>", "port of /healthz and /readyz; 0 for any free one", wholeNumber, 8080)
    .option("--http-host <address>", "address of all ports", inCluster(process.env) ? "0.0.0.0" : "127.0.0.1")
    .addOption(
      new Option(
        "--metrics-port <port>",
        "port of /metrics, over TLS and for those whom the cluster lets read it; without it they are on --http-port, " +
          "for anybody, where that is on this machine alone",
      )
        .argParser(wholeNumber)
        .default(inCluster(process.env) ? 8443 : undefined),
    )
    .option("--metrics-certificate <folder>", "folder with tls.crt and tls.key (default: one is made at each start)")
    .option("--concurrency <n>", "objects that are worked on at the same time", positive, availableParallelism())
    .option("--update-timeout <seconds>", "after this an update is interrupted and tried again", positive, 600)
    .option("--drift-interval <seconds>", "how often rows are compared with their objects", positive, 30)
    .option("--grace-period <seconds>", "how long running updates may go on after a stop", wholeNumber, 20)
    .addHelpText(
      "after",
      `
Environment:
  KUBECONFIG                           the cluster (default: ~/.kube/config, or the Pod's service account)
  PULUMI_BACKEND_URL                   where state is kept: file://, postgres://, s3://, gs://, azblob://
  PULUMI_CONFIG_PASSPHRASE[_FILE]      protects the state; made up outside a cluster
  KINDSTACK_WORK_DIR                   files of running updates (default: .kindstack/work)
  KINDSTACK_PULUMI                     the Pulumi CLI (default: from PATH, the cache, a download or a build)
  PSQL_HOST, PSQL_PORT, PSQL_DBNAME, PSQL_USER, PSQL_PASSWORD, PGSSLMODE, PSQL_CA_FILE
                                       the database of PostgresWriters
  KINDSTACK_POSTGRES_TABLES            tables that PostgresWriters may write, such as "students,app.*"
  KINDSTACK_PROTECTED_NAMESPACES       namespaces that no tenant may have besides kube-*, default and the operator's
                                       own, such as "cert-manager,ingress-*"
  KINDSTACK_LOG_LEVEL, KINDSTACK_LOG_FORMAT
                                       trace, debug, info, warn, error; json, pretty`,
    )
    .action(runOperator);
}

async function runOperator(options: RunOptions): Promise<void> {
  const logger = createLogger();
  const stop = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => stop.abort(new Error(name)));

  const state = readStateConfig(process.env);
  const pulumi = await resolveBinary("pulumi", {
    signal: stop.signal,
    observe: (event) =>
      logger.info(
        { event: event.type, ...("source" in event && { source: event.source.label }) },
        "preparing the Pulumi CLI",
      ),
  });
  const client = connectKubernetes();
  const metrics = createMetrics();
  const recorder = new EventRecorder({ client, logger });
  const host = new ProviderHost(providers);
  await host.start();
  const workspace = await openWorkspace({
    pulumi: pulumi.path,
    directory: state.workDirectory,
    backendUrl: state.backendUrl,
    passphrase: state.passphrase,
    environment: process.env,
  });
  const operator = new Operator({
    kinds,
    client,
    engine: new StackEngine({ workspace, host, timeoutMs: options.updateTimeout * 1000, log: logger }),
    recorder,
    metrics,
    logger,
    concurrency: options.concurrency,
    driftIntervalMs: options.driftInterval * 1000,
    gracePeriodMs: options.gracePeriod * 1000,
  });
  let endpoints: Endpoints | undefined;
  try {
    endpoints = await startEndpoints({
      ...options,
      client,
      metrics,
      healthy: () => undefined, // a process that can answer is healthy; what it waits for, a restart would not bring
      ready: () => operator.notReady,
      logger,
    });
    logger.info({ server: client.server, ...endpoints.addresses }, "operator starts");
    if (options.installCrds) await installKinds(client, kinds);
    await operator.run(stop.signal);
    logger.info("operator stopped");
  } finally {
    await endpoints?.close();
    host.stop();
    await closePool();
    await disconnectKubernetes();
  }
}

function wholeNumber(text: string): number {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError("a whole number is needed.");
  return Number(text);
}

function positive(text: string): number {
  const number = wholeNumber(text);
  if (number === 0) throw new InvalidArgumentError("it must be at least 1.");
  return number;
}
