import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { errorMessageOf } from "../../providers/errors";
import { ProviderHost } from "../../providers/host/server";
import { providersOf } from "../../providers/index";
import { connectKubernetes, disconnectKubernetes } from "../../providers/kubernetes/connection";
import { closePool } from "../../providers/postgres/pool";
import type { AnyKind } from "../../stacks/contract/kind";
import { fileBackendDirectory } from "../automation/file-backend";
import type { Workspace } from "../automation/pulumi";
import { withScratch } from "../automation/scratch";
import { StackReader } from "../automation/stack-reader";
import { openWorkspace } from "../automation/workspace";
import { readStateConfig } from "../config";
import { ClusterView } from "../preview/cluster-view";
import { Inspector } from "../preview/inspector";
import { resolvePulumi } from "../toolchain/pulumi";
import { PreviewProgress } from "./preview-progress";
import { Progress } from "./progress";
import { untilInterrupted } from "./until-interrupted";

export interface InspectionOptions {
  kinds: readonly AnyKind[];
  /** Previews that run at the same time, by a command that previews. */
  concurrency?: number;
}

const TIMEOUT_MS = 10 * 60_000;

/** The environment variables of {@link withInspection}, for a command's help. */
export const INSPECTION_HELP = `
Environment:
  KUBECONFIG                        the cluster, if any; read rights suffice
  PULUMI_BACKEND_URL                where the operator keeps the state
  PULUMI_CONFIG_PASSPHRASE[_FILE], KINDSTACK_SECRETS_PROVIDER
                                    the encryption of secrets in the state
  PSQL_HOST, …                      the database of kinds with rows, as for \`kindstack run\``;

/**
 * Runs something with the state, the cluster and the providers at hand.
 *
 * It works in a folder of its own: an operator on the same machine may be at work in the one that is configured.
 */
export function withInspection<T>(options: InspectionOptions, run: (inspector: Inspector) => Promise<T>): Promise<T> {
  return untilInterrupted((signal) =>
    withScratch(tmpdir(), "kindstack-inspection", (workDirectory) => inspect(options, workDirectory, signal, run)),
  );
}

async function inspect<T>(
  { kinds, concurrency }: InspectionOptions,
  workDirectory: string,
  signal: AbortSignal,
  run: (inspector: Inspector) => Promise<T>,
): Promise<T> {
  const state = readStateConfig(process.env);
  const host = new ProviderHost(providersOf(kinds));
  const progress = new Progress();
  let workspace: Workspace | undefined;
  let previewed: PreviewProgress | undefined;
  try {
    // To make a server takes longer than a look.
    const pulumi = await resolvePulumi({ signal, observe: progress.observeTools, make: false });
    await host.start();
    const opening = openCluster(); // never fails, and needs nothing of the workspace
    workspace = await openWorkspace({
      ...state,
      workDirectory,
      pulumi,
      environment: process.env,
      attachment: host.attachment,
      log: console,
    });
    const cluster = await opening;
    if (concurrency !== undefined) previewed = new PreviewProgress();
    const inspector = new Inspector({
      kinds,
      reader: new StackReader({ workspace, host, timeoutMs: TIMEOUT_MS, concurrency: concurrency ?? 1 }),
      cluster,
      signal,
      notes: notesOn(state.backendUrl, cluster),
      ...(previewed && { observe: previewed.show }),
    });
    return await run(inspector);
  } finally {
    previewed?.end();
    await workspace?.pulumi.close();
    host.stop();
    await closePool();
    await disconnectKubernetes();
  }
}

/** A kubeconfig that cannot be read is as good as none. */
async function openCluster(): Promise<ClusterView> {
  try {
    return await ClusterView.open(connectKubernetes());
  } catch (error) {
    return ClusterView.none(`the kubeconfig cannot be read: ${errorMessageOf(error)}`);
  }
}

function notesOn(backendUrl: string, { unreachable }: ClusterView): string[] {
  const notes: string[] = [];
  const directory = fileBackendDirectory(backendUrl);
  if (directory !== undefined && !existsSync(directory)) {
    notes.push(`there is no state in ${directory}, so everything is new: is PULUMI_BACKEND_URL right?`);
  }
  if (unreachable !== undefined) {
    notes.push(`compared with the state alone and validated by schema and rules, without admission: ${unreachable}`);
  }
  return notes;
}
