import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { type Command, InvalidArgumentError } from "commander";
import type { StackEngine } from "../automation/engine";
import { inCluster } from "../config";
import type { ManagerOptions } from "../operator/manager";
import { kubernetesLeases } from "../sharding/lease-store";
import { Shards } from "../sharding/shards";
import { checkTiming, type LeaseTiming } from "../sharding/timing";
import { seconds } from "./parse-options";

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
    observe(transition, held) {
      metrics.shardsHeld.set(held);
      metrics.shardTransitions.inc({ transition });
    },
  });
}

function shardCount(text: string): number {
  if (!/^[1-9]\d{0,2}$/.test(text)) throw new InvalidArgumentError("it must be a whole number from 1 to 999.");
  return Number(text);
}
