import timers from "node:timers/promises";
import type { Logger } from "pino";
import { errorMessageOf } from "../../providers/errors";
import { type KubernetesClient, known } from "../../providers/kubernetes/client";
import { DEFINITION_TYPE, findEndingDefinitions } from "../../stacks/contract/crd";
import { type AnyKind, kindName } from "../../stacks/contract/kind";

/** How often it is looked whether a CRD that is being deleted is gone. */
const INTERVAL_MS = 1_000;

interface EndingOptions {
  client: Pick<KubernetesClient, "get">;
  kinds: readonly AnyKind[];
  /** Installs kinds; without it, the log says that the user has to. */
  install: ((kinds: readonly AnyKind[]) => Promise<unknown>) | undefined;
  logger: Pick<Logger, "info" | "warn">;
  signal: AbortSignal;
}

/**
 * Looks after kinds whose CRDs are being deleted as the operator starts: what is applied to such a CRD goes with it. The operator
 * deletes the objects, which it waits for; when a CRD is gone, it is installed again.
 */
export async function outliveDefinitions({ client, kinds, install, logger, signal }: EndingOptions): Promise<void> {
  for (const kind of await findEndingDefinitions(client, kinds)) {
    const next =
      install === undefined ? "apply the CRDs again when it is gone" : "it is installed again when it is gone";
    logger.warn({ kind: kindName(kind), next }, "the CRD of a kind is being deleted, with all objects of the kind");
    if (install !== undefined) void reinstalled(kind, { client, install, logger, signal });
  }
}

async function reinstalled(
  kind: AnyKind,
  { client, install, logger, signal }: Omit<EndingOptions, "kinds"> & Required<Pick<EndingOptions, "install">>,
): Promise<void> {
  while (!signal.aborted) {
    await timers.setTimeout(INTERVAL_MS, undefined, { signal }).catch(() => {});
    try {
      const definition = await known(client.get(DEFINITION_TYPE, kindName(kind)));
      if (definition?.metadata.deletionTimestamp !== undefined) continue;
      await install?.([kind]);
      logger.info({ kind: kindName(kind) }, "installed the CRD of a kind again");
      return;
    } catch (error) {
      logger.warn({ kind: kindName(kind), reason: errorMessageOf(error) }, "failed to install the CRD of a kind again");
    }
  }
}
