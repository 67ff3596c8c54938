import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import fs from "node:fs/promises";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { KubeConfig } from "@kubernetes/client-node";
import pRetry from "p-retry";
import lockfile from "proper-lockfile";
import { errorMessageOf } from "../../providers/errors";
import { KubernetesClient, type Manifest } from "../../providers/kubernetes/client";
import { resolveBinaries } from "../toolchain/resolve";
import type { ToolEvent } from "../toolchain/tool";
import {
  API_SERVER_SERVICE_ADDRESS,
  apiServer,
  componentKubeconfig,
  controllerManager,
  etcd,
  fakeNode,
  kwok,
  kwokRole,
  scheduler,
} from "./control-plane";
import { environmentFile, environmentOf } from "./environment";
import { HealthProbe } from "./health";
import { writeKubeconfig } from "./kubeconfig";
import { type Layout, layoutOf, logFileOf } from "./layout";
import { type Pki, preparePki } from "./pki";
import { freePort } from "./ports";
import { initialisePostgres, type PostgresSettings, postgres, postgresSettings, prepareDatabase } from "./postgres";
import { forgetPostgres, locatePostgres } from "./postgres-installation";
import { isRunning } from "./process";
import { readRecord, stopRecorded } from "./record";
import { type Component, ComponentFailedError, Supervisor } from "./supervisor";

export interface DevClusterOptions {
  /** The directory of all its data; made when there is none. */
  dir: string;
  /** Start empty: delete what an earlier cluster in this directory has stored. */
  fresh?: boolean;
  /** Gets a line for each step. */
  log?: (message: string) => void;
  observeTools?: (event: ToolEvent) => void;
  /** Ends the start; what was started by then is stopped. */
  signal?: AbortSignal;
}

/** A control plane and a database that run. */
export interface DevCluster {
  /** Absolute. */
  readonly dir: string;
  readonly kubeconfig: string;
  /** The environment variables that kubectl, Pulumi and the operator need to find the cluster. */
  readonly env: Readonly<Record<string, string>>;
  readonly postgres: PostgresSettings;
  /** By the name of the component. */
  readonly ports: Readonly<Record<string, number>>;
  /** Fulfilled when a component exits unexpectedly. */
  readonly failure: Promise<ComponentFailedError>;
  /** Starts one more process that belongs to the cluster. @throws ComponentFailedError */
  start(component: Component, signal?: AbortSignal): Promise<void>;
  /** Stops all of it; what it stored stays. */
  stop(log?: (message: string) => void): Promise<void>;
}

export interface DevClusterStatus {
  dir: string;
  /** `damaged`: some of its processes have ended without being asked to. */
  state: "running" | "damaged" | "stopped";
  processes: { name: string; pid: number; port: number; running: boolean; logFile: string }[];
}

/** There is a living cluster in that directory. */
export class DevClusterRunningError extends Error {
  override readonly name = "DevClusterRunningError";

  constructor(readonly dir: string) {
    super(`a development cluster is running in ${dir}`);
  }
}

/** Another process is starting or stopping the cluster in that directory. */
class DevClusterBusyError extends Error {
  override readonly name = "DevClusterBusyError";

  constructor(readonly dir: string) {
    super(`the development cluster in ${dir} is being started or stopped by another process`);
  }
}

const NODES = ["node-1", "node-2"];
const FIELD_MANAGER = "kindstack-dev";
const READY_TIMEOUT_MS = 60_000;
const LOCK_STALE_MS = 10_000;
const TOOLS = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok", "kwok-stages"] as const;

/**
 * Starts a control plane with two fake nodes, and a database. Processes that a crash left behind in this directory are
 * stopped first.
 *
 * @throws DevClusterRunningError, DevClusterBusyError, ToolUnavailableError, ComponentFailedError
 */
export async function startDevCluster(options: DevClusterOptions): Promise<DevCluster> {
  const layout = layoutOf(options.dir);
  const log = options.log ?? (() => {});
  const signal = options.signal ?? new AbortController().signal;
  refuseWhenRunning(layout); // before the tools are made, which may take minutes; again under the lock
  const binaries = await resolveBinaries(TOOLS, {
    signal,
    ...(options.observeTools && { observe: options.observeTools }),
  });
  await claimDirectory(layout);
  return underLock(layout, async () => {
    refuseWhenRunning(layout);
    const earlier = readRecord(layout);
    await stopRecorded(layout, earlier ?? [], (message) => log(`left by a crash: ${message}`));
    if (options.fresh || earlier === undefined) await forget(layout);
    // The user that PostgreSQL runs as for root has to get through to its data.
    await fs.chmod(layout.directory, process.getuid?.() === 0 ? 0o711 : 0o700);
    const supervisor = new Supervisor(layout);
    try {
      return await start({ layout, binaries, supervisor, log, signal });
    } catch (error) {
      supervisor.expectEnd();
      await stopRecorded(layout, supervisor.processes, log);
      throw error;
    }
  });
}

/** Removes a directory with all that a cluster stored, there or where PostgreSQL could. Nothing may run in it any more. */
export async function removeDevCluster(dir: string): Promise<void> {
  await forget(layoutOf(dir));
  await fs.rm(dir, { recursive: true, force: true });
}

/** Stops what runs in a directory, the operator included. Says whether anything did. @throws DevClusterBusyError */
export async function stopDevCluster(dir: string, log: (message: string) => void = () => {}): Promise<boolean> {
  const layout = layoutOf(dir);
  if (readRecord(layout) === undefined) return false;
  return underLock(layout, async () => {
    const processes = readRecord(layout) ?? [];
    const ran = processes.some(isRunning);
    await stopRecorded(layout, processes, log);
    return ran;
  });
}

/** What runs in a directory. */
export function devClusterStatus(dir: string): DevClusterStatus {
  const layout = layoutOf(dir);
  const processes = (readRecord(layout) ?? []).map((process) => ({
    name: process.name,
    pid: process.pid,
    port: process.port,
    running: isRunning(process),
    logFile: logFileOf(layout, process.name),
  }));
  const running = processes.filter((process) => process.running).length;
  const state = running === 0 ? "stopped" : running === processes.length ? "running" : "damaged";
  return { dir: layout.directory, state, processes };
}

/** What all steps of a start need. */
interface Start {
  layout: Layout;
  binaries: Record<(typeof TOOLS)[number], string>;
  supervisor: Supervisor;
  log: (message: string) => void;
  signal: AbortSignal;
}

async function start(options: Start): Promise<DevCluster> {
  const { layout, supervisor } = options;
  for (const directory of [layout.logs, layout.state, layout.work]) {
    await fs.mkdir(directory, { recursive: true, mode: 0o700 });
  }
  if (!existsSync(layout.passphrase)) {
    await fs.writeFile(layout.passphrase, randomBytes(24).toString("base64url"), { mode: 0o600 });
  }
  const pki = await preparePki(layout.pki, API_SERVER_SERVICE_ADDRESS);

  // When one of the two fails, the other one must have come to rest before anything is stopped.
  const [database, controlPlane] = await Promise.allSettled([startPostgres(options), startControlPlane(options, pki)]);
  if (controlPlane.status === "rejected") throw controlPlane.reason;
  if (database.status === "rejected") throw database.reason;

  const env = environmentOf(layout, database.value);
  await fs.writeFile(layout.env, environmentFile(env), { mode: 0o600 });
  return {
    dir: layout.directory,
    kubeconfig: layout.kubeconfig,
    env,
    postgres: database.value,
    ports: Object.fromEntries(supervisor.processes.map(({ name, port }) => [name, port])),
    failure: supervisor.failure,
    start: (component, startSignal = new AbortController().signal) => supervisor.start(component, startSignal),
    async stop(stopLog = () => {}) {
      supervisor.expectEnd();
      await stopDevCluster(layout.directory, stopLog);
    },
  };
}

async function startPostgres({ layout, supervisor, log, signal }: Start): Promise<PostgresSettings> {
  log("starting PostgreSQL");
  const installation = await locatePostgres(layout);
  const password = await initialisePostgres(installation);
  if (installation.dataDirectory !== layout.postgres) {
    log(`PostgreSQL's user cannot access ${layout.directory}; its data lies in ${installation.dataDirectory}`);
  }
  const settings = postgresSettings(await freePort(), password);
  const component = await postgres(installation, settings);
  // What a killed server leaves of itself needs a moment to notice, and until then the new one refuses to start.
  await pRetry(() => supervisor.start(component, signal), {
    retries: 3,
    minTimeout: 500,
    signal,
    shouldRetry: ({ error }) => error instanceof ComponentFailedError && error.message.includes("still in use"),
  });
  await prepareDatabase(settings);
  return settings;
}

async function startControlPlane({ layout, binaries, supervisor, log, signal }: Start, pki: Pki): Promise<void> {
  const etcdProbe = new HealthProbe(pki.etcdCa, pki.apiServerEtcdClient);
  const probe = new HealthProbe(pki.ca, pki.admin);
  const shared = { layout, pki };
  try {
    log("starting etcd");
    const etcdPorts = { client: await freePort(), peer: await freePort() };
    await supervisor.start(etcd(shared, binaries.etcd, etcdPorts, etcdProbe), signal);

    log("starting the API server");
    const port = await freePort();
    const apiServerPorts = { own: port, etcd: etcdPorts.client };
    await supervisor.start(apiServer(shared, binaries["kube-apiserver"], apiServerPorts, probe), signal);
    const server = `https://127.0.0.1:${port}`;
    writeKubeconfig(layout.kubeconfig, server, pki, pki.admin);
    writeKubeconfig(componentKubeconfig(layout, "controller-manager"), server, pki, pki.controllerManager);
    writeKubeconfig(componentKubeconfig(layout, "scheduler"), server, pki, pki.scheduler);
    writeKubeconfig(componentKubeconfig(layout, "kwok"), server, pki, pki.kwok);

    log("starting the controllers, the scheduler and two nodes");
    const client = adminClient(layout.kubeconfig);
    try {
      for (const manifest of kwokRole) await client.apply(manifest, { fieldManager: FIELD_MANAGER });
      const kwokBinaries = { kwok: binaries.kwok, stages: binaries["kwok-stages"] };
      const started = await Promise.allSettled(
        [
          controllerManager(shared, binaries["kube-controller-manager"], await freePort(), probe),
          scheduler(shared, binaries["kube-scheduler"], await freePort(), probe),
          kwok(shared, kwokBinaries, await freePort(), probe),
        ].map((component) => supervisor.start(component, signal)),
      );
      for (const result of started) if (result.status === "rejected") throw result.reason;
      for (const node of NODES) await client.apply(fakeNode(node), { fieldManager: FIELD_MANAGER });
      await untilUsable(client, signal);
    } finally {
      await client.close();
    }
  } finally {
    await Promise.all([etcdProbe.close(), probe.close()]);
  }
}

/** Waits until Pods can be created and scheduled. */
async function untilUsable(client: KubernetesClient, signal: AbortSignal): Promise<void> {
  const deadline = Date.now() + READY_TIMEOUT_MS;
  for (;;) {
    const nodes = await Promise.all(NODES.map((name) => client.get({ apiVersion: "v1", kind: "Node" }, name)));
    const account = await client.get({ apiVersion: "v1", kind: "ServiceAccount" }, "default", "default");
    if (account !== undefined && nodes.every(isReadyNode)) return;
    if (Date.now() > deadline) {
      throw new Error(
        "the nodes are not Ready, or the namespace default has no service account; see the logs of kwok and kube-controller-manager",
      );
    }
    await delay(100, undefined, { signal });
  }
}

function isReadyNode(node: Manifest | undefined): boolean {
  const status = node?.status as { conditions?: { type: string; status: string }[] } | undefined;
  const spec = node?.spec as { taints?: unknown[] } | undefined;
  const ready = status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True") ?? false;
  return ready && (spec?.taints ?? []).length === 0;
}

/** A client with the rights of the cluster's administrator; close it after use. */
export function adminClient(kubeconfig: string): KubernetesClient {
  const config = new KubeConfig();
  config.loadFromFile(kubeconfig);
  return new KubernetesClient(config);
}

function refuseWhenRunning(layout: Layout): void {
  if (devClusterStatus(layout.directory).state === "running") throw new DevClusterRunningError(layout.directory);
}

/** Makes the directory, and refuses one that holds something else. */
async function claimDirectory(layout: Layout): Promise<void> {
  await fs.mkdir(layout.directory, { recursive: true });
  if (readRecord(layout) !== undefined) return;
  const ours = [".lock", path.basename(layout.record)]; // of another start that is at the same point
  const foreign = (await fs.readdir(layout.directory)).filter(
    (name) => !ours.some((prefix) => name.startsWith(prefix)),
  );
  if (foreign.length > 0) {
    throw new Error(`${layout.directory} is neither empty nor the directory of a development cluster`);
  }
}

/** Removes what was stored: only the names that are known, for the user may have put more there. */
async function forget(layout: Layout): Promise<void> {
  await forgetPostgres(layout);
  const { directory, record, ...stored } = layout;
  for (const file of Object.values(stored)) await fs.rm(file, { recursive: true, force: true });
}

async function underLock<T>(layout: Layout, work: () => Promise<T>): Promise<T> {
  // A lock whose holder crashed is free again after a while.
  const release = await lockfile
    .lock(layout.directory, {
      lockfilePath: path.join(layout.directory, ".lock"),
      stale: LOCK_STALE_MS,
      onCompromised: () => {}, // after a sleep of the machine, say: what was begun is better finished than left
      retries: { retries: 24, factor: 1, minTimeout: 500, maxTimeout: 500 },
    })
    .catch((error: unknown) => {
      if ((error as { code?: string }).code === "ELOCKED") throw new DevClusterBusyError(layout.directory);
      throw new Error(`${layout.directory} cannot be locked: ${errorMessageOf(error)}`);
    });
  try {
    return await work();
  } finally {
    await release().catch(() => {}); // only a lock that was lost cannot be released
  }
}
