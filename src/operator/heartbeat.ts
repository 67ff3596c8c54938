import { setTimeout as delay } from "node:timers/promises";
import { kindName } from "../../stacks/contract/kind";
import { objectKey } from "../../stacks/contract/object";
import type { DriftPollerOptions } from "./drift-poller";

const INTERVAL_MS = 60_000;

export interface HeartbeatOptions extends Omit<DriftPollerOptions, "intervalMs"> {
  /** See {@link clusterUid}; undefined where it may not be read. */
  cluster: string | undefined;
}

/** Tells other clusters that this one lives ({@link ExternalResources.heartbeat}), until `signal` is aborted. */
export async function sendHeartbeats(options: HeartbeatOptions, signal: AbortSignal): Promise<void> {
  const { controllers, cluster, logger } = options;
  if (cluster === undefined) return;
  while (!signal.aborted) {
    for (const controller of [...controllers()]) {
      const { kind } = controller;
      const { external } = kind.capabilities;
      if (external?.heartbeat === undefined) continue;
      if (!controller.list().some(({ metadata }) => controller.holds(objectKey(metadata)))) continue;
      await external
        .heartbeat(cluster)
        .catch((error: unknown) =>
          logger.warn({ err: error, kind: kindName(kind) }, "failed to record the cluster's heartbeat"),
        );
    }
    await delay(INTERVAL_MS, undefined, { signal }).catch(() => {});
  }
}
