import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import fs from "node:fs/promises";
import path from "node:path";
import { pathToFileURL } from "node:url";
import lockfile from "proper-lockfile";
import { errorMessageOf } from "../../providers/errors";
import { quoteForShell } from "../text/shell";
import { resolveBinaries } from "../toolchain/resolve";
import type { ToolEvent } from "../toolchain/tool";
import { API_SERVER_TOOLS, CONTROLLER_TOOLS, startApiServer, startControllers } from "./control-plane";
import { type Layout, layoutOf, logFileOf } from "./layout";
import { portOf } from "./ports";
import { type PostgresSettings, startPostgres } from "./postgres";
import { removePostgresData } from "./postgres-installation";
import { isRunning, type ProcessIdentity } from "./process";
import {
  type Component,
  type ComponentFailedError,
  type Log,
  readRecord,
  Supervisor,
  stopRecorded,
} from "./supervisor";

interface DevClusterOptions {
  /** The directory of all its data; made when there is none. */
  dir: string;
  /** Start empty: delete what an earlier cluster in this directory has stored. */
  fresh?: boolean;
  log?: Log;
  observeTools?: (event: ToolEvent) => void;
  /**
   * Called when the API server and the database serve, before the programs of controllers and nodes are made, which takes
   * minutes the first time.
   */
  onServing?: (cluster: DevCluster) => Promise<void>;
  /** Cancels the start, also of a component; what has been started is stopped. */
  signal?: AbortSignal;
}

export interface DevCluster {
  /** Absolute. */
  readonly dir: string;
  readonly kubeconfig: string;
  /** The environment variables that kubectl, Pulumi and the operator need to find the cluster. */
  readonly env: Readonly<Record<string, string>>;
  readonly postgres: PostgresSettings;
  /** Where an operator is to serve its metrics, as `env` says. */
  readonly operatorPort: number;
  /** Fulfilled when a component ends. */
  readonly failure: Promise<ComponentFailedError>;
  /** Starts one more process that belongs to the cluster. @throws ComponentFailedError */
  start(component: Component): Promise<ProcessIdentity>;
  /** Stops all components; their data stays. */
  stop(log?: Log): Promise<void>;
}

export class DevClusterRunningError extends Error {
  override readonly name = "DevClusterRunningError";

  constructor(dir: string) {
    super(`a development cluster is running in ${dir}`);
  }
}

const LOCK = ".lock";
const LOCK_STALE_MS = 10_000;
/** As long as another process may take to start the cluster. */
const LOCK_WAIT_MS = 60_000;
const LOCK_POLL_MS = 500;

/**
 * Starts a control plane with two fake nodes, and a database. Processes that a crash left behind in this directory are
 * stopped first.
 */
export async function startDevCluster({
  dir,
  fresh = false,
  log = () => {},
  observeTools: observe = () => {},
  onServing = async () => {},
  signal = new AbortController().signal,
}: DevClusterOptions): Promise<DevCluster> {
  const layout = layoutOf(dir);
  refuseWhenRunning(layout); // before the tools are made, which may take minutes; again under the lock
  const binaries = await resolveBinaries([...API_SERVER_TOOLS, "postgres"], { signal, observe });
  await fs.mkdir(layout.directory, { recursive: true });
  return underLock(layout, async () => {
    refuseWhenRunning(layout);
    const isNew = readRecord(layout) === undefined;
    if (isNew) await refuseForeign(layout);
    await stopRecorded(layout, (message) => log(`left by a crash: ${message}`));
    if (fresh || isNew) await removeStored(layout);
    // Under root, PostgreSQL runs as another user, which must reach its data.
    await fs.chmod(layout.directory, process.getuid?.() === 0 ? 0o711 : 0o700);
    try {
      const supervisor = new Supervisor(layout, signal);
      const { cluster, apiServerPort } = await startServing(supervisor, binaries, log);
      await onServing(cluster);
      const controllers = await resolveBinaries(CONTROLLER_TOOLS, { signal, observe });
      await startControllers(supervisor, apiServerPort, controllers, log);
      return cluster;
    } catch (error) {
      await stopRecorded(layout, log);
      throw error;
    }
  });
}

/** Removes a directory with all that a cluster stored, there or where PostgreSQL could. Nothing may run in it any more. */
export async function removeDevCluster(dir: string): Promise<void> {
  await removeStored(layoutOf(dir));
  await fs.rm(dir, { recursive: true, force: true });
}

/** Stops what runs in a directory, the operator included. Says whether anything did. */
export async function stopDevCluster(dir: string, log: Log = () => {}): Promise<boolean> {
  const layout = layoutOf(dir);
  if (readRecord(layout) === undefined) return false;
  return underLock(layout, () => stopRecorded(layout, log));
}

/** What runs in a directory; `damaged`: some of its processes have ended without being asked to. */
export function devClusterStatus(dir: string) {
  const layout = layoutOf(dir);
  const processes = (readRecord(layout) ?? []).map((process) => {
    return { ...process, running: isRunning(process), logFile: logFileOf(layout, process.name) };
  });
  const running = processes.filter((process) => process.running).length;
  const state = running === 0 ? "stopped" : running === processes.length ? "running" : "damaged";
  return { state, processes };
}

async function startServing(
  supervisor: Supervisor,
  binaries: Parameters<typeof startApiServer>[1] & { postgres: string },
  log: Log,
): Promise<{ cluster: DevCluster; apiServerPort: number }> {
  const { layout, failure } = supervisor;
  for (const directory of [layout.logs, layout.state, layout.work]) {
    await fs.mkdir(directory, { recursive: true, mode: 0o700 });
  }
  if (!existsSync(layout.passphrase)) {
    await fs.writeFile(layout.passphrase, randomBytes(24).toString("base64url"), { mode: 0o600 });
  }
  const starts = [
    startApiServer(supervisor, binaries, log),
    startPostgres(supervisor, binaries.postgres, log),
  ] as const;
  await Promise.allSettled(starts); // when one fails, the other must have settled before anything is stopped
  const [apiServerPort, postgres] = await Promise.all(starts);

  const operatorPort = await portOf(layout, "operator");
  const env = environmentOf(layout, postgres, operatorPort);
  await fs.writeFile(layout.env, environmentFile(env), { mode: 0o600 });
  const { directory: dir, kubeconfig } = layout;
  const cluster: DevCluster = {
    ...{ dir, kubeconfig, env, postgres, operatorPort, failure },
    start: (component) => supervisor.start(component),
    stop: async (stopLog) => void (await stopDevCluster(dir, stopLog)),
  };
  return { cluster, apiServerPort };
}

function refuseWhenRunning(layout: Layout): void {
  if (devClusterStatus(layout.directory).state === "running") throw new DevClusterRunningError(layout.directory);
}

async function refuseForeign({ directory, record }: Layout): Promise<void> {
  const ours = [LOCK, `${path.basename(record)}.new`]; // the latter of a crash
  const foreign = (await fs.readdir(directory)).filter((name) => !ours.includes(name));
  if (foreign.length > 0) throw new Error(`${directory} is neither empty nor the directory of a development cluster`);
}

/** Removes what was stored, by known names only: the user may have added files. */
async function removeStored(layout: Layout): Promise<void> {
  await removePostgresData(layout);
  const { directory, record, ...stored } = layout;
  for (const file of Object.values(stored)) await fs.rm(file, { recursive: true, force: true });
}

async function underLock<T>(layout: Layout, work: () => Promise<T>): Promise<T> {
  // A lock whose holder crashed is free again after a while.
  const release = await lockfile
    .lock(layout.directory, {
      lockfilePath: path.join(layout.directory, LOCK),
      stale: LOCK_STALE_MS,
      onCompromised: () => {}, // for example after the machine slept: finishing is better than stopping halfway
      retries: { retries: LOCK_WAIT_MS / LOCK_POLL_MS, factor: 1, minTimeout: LOCK_POLL_MS, maxTimeout: LOCK_POLL_MS },
    })
    .catch((error: unknown) => {
      if ((error as { code?: string }).code === "ELOCKED") {
        throw new Error(
          `the development cluster in ${layout.directory} is being started or stopped by another process`,
        );
      }
      throw new Error(`${layout.directory} cannot be locked: ${errorMessageOf(error)}`);
    });
  try {
    return await work();
  } finally {
    await release().catch(() => {}); // only a lock that was lost cannot be released
  }
}

/** The environment variables that kubectl, psql, Pulumi and Kindstack need to find the cluster and its operator. */
export function environmentOf(layout: Layout, postgres: PostgresSettings, port: number): Record<string, string> {
  return {
    KUBECONFIG: layout.kubeconfig,
    PSQL_HOST: postgres.host,
    PSQL_PORT: String(postgres.port),
    PSQL_DBNAME: postgres.database,
    PSQL_USER: postgres.user,
    PSQL_PASSWORD: postgres.password,
    // The names that PostgreSQL's own programs read, so that plain psql works.
    PGHOST: postgres.host,
    PGPORT: String(postgres.port),
    PGDATABASE: postgres.database,
    PGUSER: postgres.user,
    PGPASSWORD: postgres.password,
    // For packages of kinds, which may read none of these.
    DATABASE_URL: urlOf(postgres),
    PULUMI_BACKEND_URL: pathToFileURL(layout.state).href,
    PULUMI_CONFIG_PASSPHRASE_FILE: layout.passphrase,
    KINDSTACK_WORK_DIR: layout.work,
    KINDSTACK_METRICS_URL: `http://127.0.0.1:${port}/metrics`,
  };
}

function urlOf({ host, port, database, user, password }: PostgresSettings): string {
  const [credentials, path] = [[user, password].map(encodeURIComponent).join(":"), encodeURIComponent(database)];
  return `postgres://${credentials}@${host}:${port}/${path}`;
}

/** A file for a POSIX shell's `.` that exports the variables. */
export function environmentFile(environment: Readonly<Record<string, string>>): string {
  return Object.entries(environment)
    .map(([name, value]) => `export ${name}=${quoteForShell(value)}\n`)
    .join("");
}
