import { tmpdir } from "node:os";
import { TerminalError } from "../../providers/errors";
import { ProviderHost } from "../../providers/host/session";
import { inTime } from "../../providers/in-time";
import { providersOf } from "../../providers/index";
import { type Cluster, clusterOf } from "../../providers/kubernetes/cluster";
import { withKubernetes } from "../../providers/kubernetes/connection";
import type { AnyKind } from "../../stacks/contract/kind";
import type { StackEngine } from "../automation/engine";
import { GoEngine } from "../automation/go-engine";
import { withPluginFolders } from "../automation/needed-plugins";
import type { OperationsOptions } from "../automation/operations";
import { type EngineSettings, openEngine, withScratch } from "../automation/workspace";
import { describeOwner } from "../backend/owner";
import { readStateConfig, type StateConfig } from "../config";
import { resolveEngine, usesAutomationApi } from "../toolchain/engine";
import { commandLog } from "./command-log";
import type { Progress } from "./progress";
import { untilInterrupted } from "./until-interrupted";

/** Whose cluster it is matters less to these commands than their end. */
const CLUSTER_TIMEOUT_MS = 5_000;

type Settings = Omit<EngineSettings, "environment"> & Omit<OperationsOptions, "host">;

export interface OpenStacks {
  engine: StackEngine;
  host: ProviderHost;
}

export async function openStacks(kinds: readonly AnyKind[], settings: Settings): Promise<OpenStacks> {
  const host = new ProviderHost(providersOf(kinds));
  const all = { ...settings, host, environment: withPluginFolders(kinds, process.env) };
  if (usesAutomationApi()) {
    const { AutomationApiEngine } = await import("../automation/cli/automation-api-engine.js");
    return { engine: await AutomationApiEngine.open(all, all), host };
  }
  return { engine: new GoEngine({ ...all, processes: await openEngine(all) }), host };
}

export const STATES_HELP = `
Environment:
  PULUMI_BACKEND_URL                where the operator keeps the state
  AWS_…, GOOGLE_…, AZURE_…          credentials for s3://, gs:// and azblob://, as pulumi reads them
  PULUMI_CONFIG_PASSPHRASE[_FILE], KINDSTACK_SECRETS_PROVIDER
                                    the state's encryption; secrets stay encrypted`;

/**
 * Works with the states of the backend that the environment names, in a scratch folder, until Ctrl-C; it runs no program or
 * provider.
 */
export async function withStates<T>(
  progress: Progress,
  work: (engine: GoEngine, signal: AbortSignal, state: StateConfig) => Promise<T>,
): Promise<T> {
  if (!process.env.PULUMI_BACKEND_URL) {
    throw new TerminalError("Misconfigured", "PULUMI_BACKEND_URL must name the backend that the operator uses");
  }
  const state = readStateConfig(process.env);
  return untilInterrupted((signal) =>
    withScratch(tmpdir(), "kindstack-state", async (workDirectory) => {
      const file = await resolveEngine({ signal, observe: progress.observeTools }, state);
      const { engine } = await openStacks([], { ...state, workDirectory, file, log: commandLog, timeoutMs: 0 });
      try {
        if (engine instanceof GoEngine) {
          await warnOfOwner(engine, () =>
            inTime(withKubernetes(clusterOf), CLUSTER_TIMEOUT_MS, () => new Error("the cluster does not answer")),
          );
          return await work(engine, signal, state);
        }
        throw new TerminalError("Misconfigured", "this command needs the engine in Go: unset KINDSTACK_ENGINE");
      } finally {
        await engine.close();
      }
    }),
  ).catch((error: unknown) => {
    progress.fail();
    throw error;
  });
}

/**
 * Says on standard error when a backend is another cluster's than the current one. What cannot be read, the command itself
 * tells, and there need not be a cluster.
 */
export async function warnOfOwner(
  engine: Pick<StackEngine, "backendOwner">,
  currentCluster: () => Promise<Cluster | undefined>,
): Promise<void> {
  const owner = await engine.backendOwner().catch(() => undefined);
  const cluster = owner && (await currentCluster().catch(() => undefined));
  if (owner === undefined || cluster === undefined || cluster.uid === owner.clusterUid) return;
  const message = `the state's backend belongs to ${describeOwner(owner)}; the current cluster is ${cluster.name}`;
  process.stderr.write(`warning: ${message}\n`);
}
