import { setTimeout as delay } from "node:timers/promises";
import { kindName } from "../../stacks/contract/kind";
import { objectKey } from "../../stacks/contract/object";
import type { DriftPollerOptions } from "./drift-poller";

const INTERVAL_MS = 60_000;

export interface AnnouncerOptions extends Omit<DriftPollerOptions, "intervalMs"> {
  /** See {@link clusterUid}; undefined where it may not be read. */
  cluster: string | undefined;
}

/** Tells other clusters that this one lives ({@link ExternalResources.announce}), until `signal` is aborted. */
export async function announce(options: AnnouncerOptions, signal: AbortSignal): Promise<void> {
  const { controllers, shards, cluster, logger } = options;
  if (cluster === undefined) return;
  while (!signal.aborted) {
    for (const controller of [...controllers()]) {
      const { kind, stacks } = controller;
      const { external } = kind.capabilities;
      if (external?.announce === undefined) continue;
      const isOurs = controller
        .list()
        .some(({ metadata }) => shards?.holds(stacks.shardKeyOf(objectKey(metadata))) ?? true);
      if (!isOurs) continue;
      await external
        .announce(cluster)
        .catch((error: unknown) => logger.warn({ err: error, kind: kindName(kind) }, "could not announce the cluster"));
    }
    await delay(INTERVAL_MS, undefined, { signal }).catch(() => {});
  }
}
