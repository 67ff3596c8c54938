import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { hostname } from "node:os";
import { type Command, InvalidArgumentError, Option } from "commander";
import type { Logger } from "pino";
import { TerminalError } from "../../providers/errors";
import type { KubernetesClient } from "../../providers/kubernetes/client";
import { listItems } from "../../providers/list-items";
import type { AnyKind } from "../../stacks/contract/kind";
import { findKind } from "../../stacks/contract/kind-name";
import { MODE_SPELLING, MODES, type Mode } from "../../stacks/contract/mode";
import type { StackEngine } from "../automation/engine";
import { inCluster, listenAddress, operatorNamespace } from "../config";
import type { Listener } from "../http/server";
import type { ManagerOptions } from "../operator/manager";
import { kubernetesLeases } from "../sharding/lease-store";
import { Shards } from "../sharding/shards";
import { checkTiming, type LeaseTiming } from "../sharding/step";
import { httpsUrl, seconds, wholeNumber } from "./parse-options";

export interface AdmissionOptions {
  admissionPort?: number;
  admissionHost: string;
  admissionUrl?: string;
  admissionService?: string;
  admissionClientCaFile?: string;
  admissionOwner?: string;
}

/** Port of the Service through which the API server reaches the operator. */
const SERVICE_PORT = 443;

export function withAdmissionOptions(command: Command): Command {
  return command
    .option(
      "--admission-port <port>",
      "serve admission on this port, 0 for any free one (default: not served)",
      wholeNumber,
    )
    .option("--admission-host <address>", "listen address", listenAddress(process.env))
    .option("--admission-url <url>", "URL for the API server (default: the host and port)", httpsUrl)
    .option("--admission-service <name>", "in place of the URL: a Service in the operator's namespace")
    .option(
      "--admission-client-ca-file <file>",
      "CA of the API servers' client certificates, as PEM; others are refused (default: no client certificate needed)",
    )
    .option(
      "--admission-owner <clusterrole>",
      "ClusterRole that owns all admission objects, so that they are deleted with it",
    );
}

/** Serves admission for the kinds; does nothing without a port. @throws TerminalError `Misconfigured` */
export async function serveAdmission(
  options: AdmissionOptions,
  kinds: readonly AnyKind[],
  client: KubernetesClient,
  logger: Logger,
): Promise<Listener | undefined> {
  const { admissionPort: port, admissionHost: host, admissionUrl: url, admissionService: name } = options;
  if (port === undefined) return undefined;
  // Loaded here: the certificate library takes memory, and only admission needs it.
  const { startAdmission } = await import("../admission/admission.js");
  const namespace = operatorNamespace(process.env);
  const location = name !== undefined ? { service: { namespace, name, port: SERVICE_PORT } } : url && { url };
  if (!location && ["0.0.0.0", "::"].includes(host)) {
    throw new TerminalError(
      "Misconfigured",
      `--admission-host ${host} is not an address that the API server can call; set --admission-service or --admission-url`,
    );
  }
  const { admissionOwner: ownerRole, admissionClientCaFile: caFile } = options;
  const clientCa = caFile === undefined ? undefined : await readFile(caFile, "utf8");
  return startAdmission({
    kinds,
    client,
    logger,
    port,
    host,
    namespace,
    ownerRole,
    clientCa,
    ...(location && { location }),
  });
}

export interface ShardingOptions {
  leaderElect: boolean;
  shards: number;
  leaseNamespace?: string;
  leaseDuration: number;
  renewDeadline: number;
  retryPeriod: number;
}

export function withShardingOptions(command: Command): Command {
  return command
    .option("--leader-elect", "work only while holding a Lease; the default in a Pod", inCluster(process.env))
    .option("--no-leader-elect", "start without leader election; only if no other operator runs")
    .option("--shards <n>", "number of shards, which the replicas share; each has its own Lease", shardCount, 1)
    .option("--lease-namespace <name>", "namespace of the Leases (default: the Pod's, or the kubeconfig's)")
    .option("--lease-duration <seconds>", "time without renewal after which other replicas take over", seconds, 15)
    .option("--renew-deadline <seconds>", "time without renewal after which a replica stops its work", seconds, 10)
    .option("--retry-period <seconds>", "time between two renewals", seconds, 2);
}

/**
 * The shards of an operator that shares its work with other replicas.
 *
 * @returns `undefined` when it works alone
 * @throws TerminalError `Misconfigured`
 */
export function openShards(
  options: ShardingOptions,
  {
    client,
    engine,
    packages,
    metrics,
    logger,
  }: Pick<ManagerOptions, "client" | "metrics" | "logger"> & {
    engine: Pick<StackEngine, "allow">;
    packages: Pick<StackEngine, "allow">;
  },
): Shards | undefined {
  if (!options.leaderElect && options.shards === 1) return undefined;
  const timing: LeaseTiming = {
    leaseDurationMs: options.leaseDuration * 1000,
    renewDeadlineMs: options.renewDeadline * 1000,
    retryPeriodMs: options.retryPeriod * 1000,
  };
  checkTiming(timing);
  metrics.shards.set(options.shards);
  const host = hostname()
    .toLowerCase()
    .replaceAll(/[^a-z0-9-]/g, "-")
    .slice(0, 63);
  return new Shards({
    store: kubernetesLeases(client, options.leaseNamespace ?? client.namespace, timing.renewDeadlineMs / 2),
    sessionName: () => `${host}-${randomBytes(4).toString("hex")}`,
    shards: options.shards,
    timing,
    allow: (ms) => {
      engine.allow(ms);
      packages.allow(ms);
    },
    logger,
    onTransition(transition, held) {
      metrics.shardsHeld.set(held);
      metrics.shardTransitions.inc({ transition });
    },
  });
}

function shardCount(text: string): number {
  if (!/^[1-9]\d{0,2}$/.test(text)) throw new InvalidArgumentError("it must be a whole number from 1 to 999.");
  return Number(text);
}

interface ModeSetting {
  word: string | undefined;
  mode: Mode;
}

export interface ModeOption {
  mode: readonly ModeSetting[];
}

/** `--mode Observe`, `--mode tenants.multitenancy=Observe,podsets=Apply`; may be repeated. */
export function modeOption(): Option {
  return new Option("--mode <modes>", `mode of all kinds, or <kind>=<mode>, such as ${MODES.join(" or ")}`)
    .default([], MODES[0])
    .argParser((text, previous: readonly ModeSetting[] = []) => [...previous, ...listItems(text).map(parseSetting)]);
}

function parseSetting(text: string): ModeSetting {
  const [name = "", word] = text.split("=").reverse();
  const mode = MODE_SPELLING.read(name);
  if (mode === undefined || word === "" || text.split("=").length > 2) {
    throw new InvalidArgumentError(
      `${JSON.stringify(text)} must be a mode, or <kind>=<mode>; modes are ${MODES.join(", ")}.`,
    );
  }
  return { word, mode };
}

/** The mode of each kind: what names the kind, else what is for all. */
export function modesOf(
  settings: readonly ModeSetting[],
  kinds: readonly AnyKind[],
): (kind: AnyKind) => Mode | undefined {
  const all = settings.findLast(({ word }) => word === undefined)?.mode;
  const named = new Map<AnyKind, Mode>();
  for (const { word, mode } of settings) {
    if (word === undefined) continue;
    try {
      named.set(findKind(kinds, word), mode);
    } catch (error) {
      throw new TerminalError("Misconfigured", `--mode ${word}=${mode}: ${(error as Error).message}`);
    }
  }
  return (kind) => named.get(kind) ?? all;
}
