import { availableParallelism } from "node:os";
import { Command, Option } from "commander";
import { TerminalError } from "../../providers/errors";
import { clusterOf } from "../../providers/kubernetes/cluster";
import { connectKubernetes, disconnectKubernetes } from "../../providers/kubernetes/connection";
import { protectedNamespaces } from "../../providers/kubernetes/protected-namespaces";
import { closePool } from "../../providers/postgres/pool";
import type { AnyKind } from "../../stacks/contract/kind";
import { kinds as builtInKinds } from "../../stacks/kinds/index";
import { GoEngine } from "../automation/go-engine";
import { ownerFileOf } from "../automation/owner-file";
import { ownedEngine } from "../backend/owned-engine";
import { BackendOwnership } from "../backend/ownership";
import { listHolders } from "../backend/stack-holders";
import { listenAddress, operatorNamespace, readStateConfig } from "../config";
import { CONSOLE_PATH, type Console } from "../console/paths";
import type { ConsoleOptions } from "../console/source";
import { EventRecorder } from "../controller/event-recorder";
import type { KindWatch } from "../dev/kind-watch";
import type { Listener } from "../http/server";
import { outliveDefinitions } from "../operator/ending-definitions";
import {
  installKinds,
  refuseForeignDefinitions,
  refuseSecondInstallation,
  requireAuthorPolicies,
} from "../operator/install";
import { Manager } from "../operator/manager";
import { permittedKinds } from "../operator/rights";
import { warnOfUnserved } from "../operator/unserved-objects";
import { planKey } from "../plan/digest";
import { logConsoleLines } from "../telemetry/console-lines";
import { type Endpoints, startEndpoints } from "../telemetry/endpoints";
import { createLogger } from "../telemetry/log";
import { addEngineMetrics, createMetrics } from "../telemetry/metrics";
import { resolveEngine } from "../toolchain/engine";
import type { ResolveOptions } from "../toolchain/resolve";
import { giveBackMemoryWhenIdle, limitYoungGeneration } from "./heap";
import { servedKinds } from "./kinds-option";
import { type MetricsOptions, withMetricsOptions } from "./metrics-options";
import { type OpenStacks, openStacks } from "./open-stacks";
import {
  type AdmissionOptions,
  type ModeOption,
  modeOption,
  modesOf,
  openShards,
  type ShardingOptions,
  serveAdmission,
  withAdmissionOptions,
  withShardingOptions,
} from "./operator-options";
import { chosenKinds, openPackages, type PackageOptions, withPackageOptions } from "./package-options";
import { percent, positive, seconds, wholeNumber } from "./parse-options";
import { PROBE_PORTS } from "./probe-port";
import { type PreviewServerOptions, serveInspection, withPreviewServerOptions } from "./serve-inspection";
import { untilInterrupted } from "./until-interrupted";
import { logWarnings } from "./warnings";

/** Most of the time, an object in work waits for the API server or its database. */
const OBJECTS_PER_CORE = 4;
const ONE_AT_A_TIME =
  "Pulumi's Automation API runs one update at a time: slower than the engine in Go, and for a single replica";

interface RunOptions
  extends AdmissionOptions,
    MetricsOptions,
    PreviewServerOptions,
    ShardingOptions,
    PackageOptions,
    ModeOption {
  installCrds: boolean;
  watch: boolean;
  httpPort: number;
  httpHost: string;
  concurrency: number;
  rollout?: number;
  rolloutMaxFailures: number;
  authorMayNotApprove: boolean;
  updateTimeout: number;
  engineIdle: number;
  driftInterval: number;
  relistInterval: number;
  gracePeriod: number;
}

export function runCommand(): Command {
  const run = new Command("run").description(
    "run the operator against the current kubeconfig or, in a Pod, with its service account",
  );
  const command = withPackageOptions(run)
    .addOption(modeOption())
    .option("--install-crds", "apply the CRDs of these kinds first", false)
    .option("--watch", "for development: apply edits of the kinds' files", false)
    .option("--http-port <port>", "port of /healthz and /readyz; 0 for any free one", wholeNumber, PROBE_PORTS.run)
    .option("--http-host <address>", "address of all ports", listenAddress(process.env))
    .addOption(
      new Option("--concurrency <n>", "maximum number of objects in work at the same time")
        .argParser(positive)
        .default(OBJECTS_PER_CORE * availableParallelism(), `${OBJECTS_PER_CORE} for each core`),
    )
    .option("--rollout <percent>", "share of a kind's objects that get a new program at a time (default: all)", percent)
    .option("--rollout-max-failures <n>", "number of failed objects that stops a rollout", positive, 1)
    .option("--author-may-not-approve", "heed no approval of a change by those who made it (Kubernetes 1.36)", false)
    .option("--update-timeout <seconds>", "time after which an update is interrupted and retried", positive, 600)
    .option("--engine-idle <seconds>", "time without an update after which the engine exits", seconds, 60)
    .option("--drift-interval <seconds>", "how often rows are compared with their objects", positive, 30)
    .option("--relist-interval <seconds>", "full re-list interval", positive, 1800)
    .option("--grace-period <seconds>", "time for running updates and previews after SIGTERM", wholeNumber, 20);
  for (const add of [withAdmissionOptions, withMetricsOptions, withPreviewServerOptions, withShardingOptions])
    add(command);
  return command
    .addHelpText(
      "after",
      `
Examples:
  kindstack run --install-crds
  kindstack run --kinds tenants.multitenancy,postgreswriters --leader-elect
  kindstack run --kinds ./notice --install-crds         # kinds of your own

Environment:
  KINDSTACK_KINDS                      the kinds to serve, for every command, as for --kinds
  KINDSTACK_KINDS_DIRECTORY            a folder of further kinds, each a folder; served besides the built-in ones
  KUBECONFIG                           the cluster (default: ~/.kube/config, or the Pod's service account)
  PULUMI_BACKEND_URL                   where state is kept: file://, postgres://, s3://, gs://, azblob://
  PULUMI_CONFIG_PASSPHRASE[_FILE]      encrypts secrets in the state; generated outside a cluster
  KINDSTACK_SECRETS_PROVIDER           key service in its place: awskms://…, azurekeyvault://…, gcpkms://…, hashivault://…
  KINDSTACK_WORK_DIR                   files of running updates (default: .kindstack/work)
  KINDSTACK_ENGINE                     the program that runs Pulumi's engine (default: from PATH, the cache or a build), or
                                       automation-api: the CLI runs one update at a time, for a single replica
  PSQL_HOST, PSQL_PORT, PSQL_DBNAME, PSQL_USER, PSQL_PASSWORD[_FILE], PGSSLMODE, PSQL_CA_FILE, PSQL_DIRECTORY, …
                                       the database of kinds with rows; see docs/postgresql.md
  KINDSTACK_POSTGRES_TABLES            tables that objects may write, such as "students,team-a=app.*" (default: all)
  KINDSTACK_CLUSTER                    the cluster's name in records of rows and of the state's backend (default: its UID)
  KINDSTACK_PROTECTED_NAMESPACES       further namespaces that no tenant may have, besides kube-*, default and the
                                       operator's own, such as "cert-manager,ingress-*"
  KINDSTACK_ALLOWED_GROUPS             groups of everybody that tenants may name as their administrators or users, such as
                                       "system:authenticated"
  KINDSTACK_NAMESPACE                  the namespace of its Secrets (default: the Pod's, else "default")
  KINDSTACK_LOG_LEVEL, KINDSTACK_LOG_FORMAT
                                       trace, debug, info, warn, error; json, pretty
${kindVariables()}`,
    )
    .action((options: RunOptions, self: Command) => untilInterrupted((signal) => runOperator(options, self, signal)));
}

function kindVariables(): string {
  const variables = builtInKinds.flatMap(({ capabilities }) => Object.entries(capabilities.environment ?? {}));
  return variables.map(([name, meaning]) => `  ${name.padEnd(36)} ${meaning}`).join("\n");
}

async function runOperator(options: RunOptions, command: Command, signal: AbortSignal): Promise<void> {
  const logger = createLogger();
  logWarnings(logger);
  logConsoleLines((level, fields) => logger[level](fields, "console"));
  const state = readStateConfig(process.env);
  protectedNamespaces(); // what protects nothing is told now
  const report = (kind: string, reason: string) => logger.error({ kind, reason }, "kind is not served");
  const packages = openPackages(options, logger);
  const load = () => chosenKinds(command, packages, options);
  const client = connectKubernetes();
  const metrics = createMetrics();
  let operator: Manager | undefined;
  let console: Console | undefined;
  let endpoints: Endpoints | undefined;
  let stacks: OpenStacks | undefined;
  let admission: Listener | undefined;
  let inspection: Awaited<ReturnType<typeof serveInspection>>;
  let watch: KindWatch | undefined;
  try {
    const chosen = await load();
    const loaded = servedKinds(chosen, report);
    const configuredMode = modesOf(options.mode, loaded);
    // First of all: probes are answered while the rest starts.
    endpoints = await startEndpoints({
      ...options,
      client,
      metrics,
      ready: () => (operator === undefined ? "starting" : operator.notReady),
      console: { path: CONSOLE_PATH, answer: async (request) => console?.(request) },
      logger,
    });
    const observe: ResolveOptions["observe"] = (event) =>
      logger.info(
        { event: event.type, tool: event.tool.name, ...("source" in event && { source: event.source.label }) },
        "preparing Pulumi's engine",
      );
    const file = await resolveEngine({ signal, observe }, state);
    stacks = await openStacks(loaded, {
      ...state,
      file,
      log: logger,
      timing: { idleMs: options.engineIdle * 1000 },
      timeoutMs: options.updateTimeout * 1000,
      previewsAtOnce: options.concurrency, // a worker does not wait for another one's
    });
    const { engine, host } = stacks;
    if (engine instanceof GoEngine) addEngineMetrics(metrics.registry, engine.processes);
    else {
      logger.warn(ONE_AT_A_TIME);
      ownerFileOf(state.backendUrl);
      if (options.shards > 1) throw new TerminalError("Misconfigured", `--shards ${options.shards}: ${ONE_AT_A_TIME}`);
    }
    const key = planKey(state.protection);
    const recorder = new EventRecorder({ client, logger });
    const shards = openShards(options, { client, engine, packages, metrics, logger });
    const namespace = operatorNamespace(process.env);
    const kinds = [...(await permittedKinds(client, loaded, report))];
    await refuseSecondInstallation(client, namespace);
    const graceMs = options.gracePeriod * 1000;
    const backend = new BackendOwnership({
      engine,
      namespace,
      cluster: () => clusterOf(client),
      holders: () => listHolders(client, kinds),
      logger,
    });
    metrics.backendRefused(() => backend.refusal?.reason);
    const manager = new Manager({
      kinds,
      client,
      engine: ownedEngine(engine, backend),
      backend,
      recorder,
      metrics,
      logger,
      shards,
      ...(options.rollout !== undefined && {
        rollout: { budget: options.rollout / 100, maxFailures: options.rolloutMaxFailures },
      }),
      configuredMode,
      namespace,
      planKey: key,
      authorMayNotApprove: options.authorMayNotApprove,
      concurrency: options.concurrency,
      driftIntervalMs: options.driftInterval * 1000,
      relistIntervalMs: options.relistInterval * 1000,
      gracePeriodMs: graceMs,
    });
    operator = manager;
    console = lazyConsole({ kinds, server: client.server, operator: manager, recorder, engine });
    limitYoungGeneration();
    giveBackMemoryWhenIdle();
    logger.info({ server: client.server, ...endpoints.addresses }, "operator starts");
    if (options.authorMayNotApprove) await requireAuthorPolicies(client);
    const prepare: typeof installKinds = (client, kinds, report) =>
      options.installCrds ? installKinds(client, kinds, report, options) : refuseForeignDefinitions(client, kinds);
    kinds.splice(0, kinds.length, ...(await prepare(client, kinds, report)));
    const install = options.installCrds ? (ended: readonly AnyKind[]) => prepare(client, ended) : undefined;
    await outliveDefinitions({ client, kinds, install, logger, signal });
    await warnOfUnserved(client, kinds, logger);
    admission = await serveAdmission(options, kinds, client, logger);
    inspection = await serveInspection(options, {
      ...{ kinds, client, engine: file, planKey: key, state, backend, logger, signal, graceMs },
      configuredMode,
      isBusy: () => manager.isBusy,
      plugins: engine instanceof GoEngine ? engine.processes.plugins : undefined,
    });
    const startWatch = async () => {
      const { KindWatch } = await import("../dev/kind-watch.js");
      const restartAdmission = async () => {
        await admission?.close();
        admission = await serveAdmission(options, kinds, client, logger);
      };
      const served = { kinds, client, host, operator: manager, signal, logger };
      watch = new KindWatch({
        ...served,
        chosen,
        load,
        keep: (kept) => packages.keep(kept),
        prepare,
        restartAdmission,
      });
    };
    await manager.run(signal, options.watch ? startWatch : undefined);
    logger.info("operator stopped");
  } finally {
    await watch?.close();
    await inspection?.close();
    await admission?.close();
    await endpoints?.close();
    await stacks?.engine.close();
    packages.close();
    await closePool();
    await disconnectKubernetes();
  }
}

/** The console's code is loaded when the first page is asked for. */
function lazyConsole(options: ConsoleOptions): Console {
  let pages: Promise<Console> | undefined;
  return async (request) => {
    pages ??= import("../console/console.js").then(({ openConsole }) => openConsole(options));
    return (await pages)(request);
  };
}
