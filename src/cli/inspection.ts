import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { errorMessageOf, TerminalError } from "../../providers/errors";
import { connectKubernetes, disconnectKubernetes } from "../../providers/kubernetes/connection";
import { closePool } from "../../providers/postgres/pool";
import type { AnyKind } from "../../stacks/contract/kind";
import { withScratch } from "../automation/workspace";
import { readStateConfig } from "../config";
import { planKey } from "../plan/digest";
import type { Answers, RequestPath, Requests } from "../preview/api";
import { ClusterView } from "../preview/cluster-view";
import { type Inspection, inspectStacks } from "../preview/inspect";
import { resolveEngine } from "../toolchain/engine";
import { askOperator } from "./ask-operator";
import { commandLog } from "./command-log";
import { type OpenStacks, openStacks, warnOfOwner } from "./open-stacks";
import { Progress, startSpinner } from "./progress";
import { operatorAt, type ServerOptions } from "./server-options";
import { untilInterrupted } from "./until-interrupted";

interface InspectionOptions {
  kinds: readonly AnyKind[];
  /** Maximum number of previews at the same time; set by commands that preview. */
  concurrency?: number;
}

const TIMEOUT_MS = 10 * 60_000;
const BAR_WIDTH = 20;

export const INSPECTION_HELP = `
Environment:
  KUBECONFIG                        the cluster, if any; read rights suffice
  PULUMI_BACKEND_URL                where the operator keeps the state
  PULUMI_CONFIG_PASSPHRASE[_FILE], KINDSTACK_SECRETS_PROVIDER
                                    the encryption of secrets in the state
  PSQL_HOST, …                      the database of kinds with rows, as for \`kindstack run\`

With --server, the command needs only a token:
  KINDSTACK_TOKEN                   the token, unless --token-file is given or the kubeconfig has one`;

/**
 * Asks the operator at `--server`. Without it, reads the state, the cluster and the database directly, in a scratch
 * folder: an operator on this machine may use the configured one. Ctrl-C ends it.
 */
export function inspect<P extends RequestPath>(
  path: P,
  request: Requests[P],
  server: ServerOptions,
  local: () => InspectionOptions,
): Promise<Answers[P]> {
  if (server.server !== undefined) {
    return untilInterrupted(async (signal) => askOperator(await operatorAt(server, signal), path, request));
  }
  const options = local();
  return untilInterrupted((signal) =>
    withScratch(tmpdir(), "kindstack-inspection", (workDirectory) =>
      withSources(options, workDirectory, signal, (inspection) => inspectStacks(inspection, path, request)),
    ),
  );
}

async function withSources<T>(
  { kinds, concurrency }: InspectionOptions,
  workDirectory: string,
  signal: AbortSignal,
  run: (inspection: Inspection) => Promise<T>,
): Promise<T> {
  const state = readStateConfig(process.env);
  const progress = new Progress();
  let stacks: OpenStacks | undefined;
  let spinner: ReturnType<typeof startSpinner>;
  try {
    const file = await resolveEngine({ signal, observe: progress.observeTools }, state);
    const opening = openCluster(); // needs nothing of the engine
    opening.catch(() => {});
    stacks = await openStacks(kinds, {
      ...state,
      workDirectory,
      file,
      log: commandLog,
      timeoutMs: TIMEOUT_MS,
      previewsAtOnce: concurrency ?? 1,
    });
    const cluster = await opening;
    await warnOfOwner(stacks.engine, () => cluster.identity());
    if (concurrency !== undefined) spinner = startSpinner("previewing");
    const sources = { engine: stacks.engine, cluster, notes: notesOn(state.backendUrl, cluster) };
    return await run({
      kinds,
      signal,
      open: async () => sources,
      planKey: state.protection.passphrase && planKey(state.protection),
      onProgress(done, total) {
        if (spinner) spinner.text = `previewing ${bar(done / total)} ${done} of ${total}`;
      },
    });
  } finally {
    progress.fail(); // nothing else ends the step of a tool that is interrupted
    spinner?.stop();
    await stacks?.engine.close();
    await closePool();
    await disconnectKubernetes();
  }
}

function bar(share: number): string {
  return "█".repeat(Math.round(share * BAR_WIDTH)).padEnd(BAR_WIDTH, "░");
}

/** A kubeconfig that cannot be read counts as no cluster. */
async function openCluster(): Promise<ClusterView> {
  try {
    return await ClusterView.open(connectKubernetes().patient());
  } catch (error) {
    if (error instanceof TerminalError) throw error; // such as for an impersonation without a user
    return ClusterView.none(`the kubeconfig cannot be read: ${errorMessageOf(error)}`);
  }
}

function notesOn(backendUrl: string, { unreachable }: ClusterView): string[] {
  const notes: string[] = [];
  const directory = backendUrl.startsWith("file://") ? join(fileURLToPath(new URL(backendUrl)), ".pulumi") : undefined;
  if (directory !== undefined && !existsSync(directory)) {
    notes.push(`there is no state in ${directory}, so everything is new: is PULUMI_BACKEND_URL right?`);
  }
  if (unreachable !== undefined) {
    notes.push(`compared with the state alone and validated by schema and rules, without admission: ${unreachable}`);
  }
  return notes;
}
