import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { errorMessageOf } from "../../providers/errors";
import { connectKubernetes, disconnectKubernetes } from "../../providers/kubernetes/connection";
import { closePool } from "../../providers/postgres/pool";
import type { AnyKind } from "../../stacks/contract/kind";
import { fileBackendDirectory } from "../automation/file-backend";
import { withScratch } from "../automation/scratch";
import { StackReader } from "../automation/stack-reader";
import { readStateConfig } from "../config";
import { ClusterView } from "../preview/cluster-view";
import { Inspector } from "../preview/inspector";
import { selectCandidates } from "../preview/preview";
import type { RemoteInspector } from "../preview/remote";
import { resolvePulumi } from "../toolchain/pulumi";
import { type OpenStacks, openStacks } from "./open-stacks";
import { Progress, startSpinner } from "./progress";
import { type ServerOptions, withServer } from "./server-options";
import { untilInterrupted } from "./until-interrupted";

/** What an operator's server answers, and {@link inspect} without one. */
export type Inspections = Pick<RemoteInspector, "preview" | "diff" | "history" | "outputs" | "state">;

export interface InspectionOptions {
  kinds: readonly AnyKind[];
  /** Previews that run at the same time, by a command that previews. */
  concurrency?: number;
}

const TIMEOUT_MS = 10 * 60_000;
const BAR_WIDTH = 20;

/** The environment variables of {@link inspect}, for a command's help. */
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
 * Asks the operator at `--server` or, without it, the state, the cluster and the database themselves, which takes a folder
 * of its own: an operator on the same machine may use the one that is configured. An interruption ends it.
 *
 * @param local only called without `--server`
 */
export function inspect<T>(
  server: ServerOptions,
  local: () => InspectionOptions,
  ask: (inspections: Inspections) => Promise<T>,
): Promise<T> {
  if (server.server !== undefined) return untilInterrupted((signal) => withServer(server, signal, ask));
  const options = local();
  return untilInterrupted((signal) =>
    withScratch(tmpdir(), "kindstack-inspection", (workDirectory) => inspectHere(options, workDirectory, signal, ask)),
  );
}

async function inspectHere<T>(
  { kinds, concurrency }: InspectionOptions,
  workDirectory: string,
  signal: AbortSignal,
  ask: (inspections: Inspections) => Promise<T>,
): Promise<T> {
  const state = readStateConfig(process.env);
  const progress = new Progress();
  let stacks: OpenStacks | undefined;
  let spinner: ReturnType<typeof startSpinner>;
  try {
    // To make a server takes longer than a look.
    const pulumi = await resolvePulumi({ signal, observe: progress.observeTools, make: false });
    const opening = openCluster(); // never fails, and needs nothing of the workspace
    stacks = await openStacks(kinds, { ...state, workDirectory, pulumi, log: console });
    const cluster = await opening;
    if (concurrency !== undefined) spinner = startSpinner("previewing");
    const inspector = new Inspector({
      kinds,
      reader: new StackReader({ ...stacks, timeoutMs: TIMEOUT_MS, concurrency: concurrency ?? 1 }),
      cluster,
      signal,
      notes: notesOn(state.backendUrl, cluster),
      observe(done, total) {
        if (spinner) spinner.text = `previewing ${bar(done / total)} ${done} of ${total}`;
      },
    });
    return await ask(inspections(inspector, kinds));
  } finally {
    spinner?.stop();
    await stacks?.close();
    await closePool();
    await disconnectKubernetes();
  }
}

function bar(share: number): string {
  return "█".repeat(Math.round(share * BAR_WIDTH)).padEnd(BAR_WIDTH, "░");
}

function inspections(inspector: Inspector, kinds: readonly AnyKind[]): Inspections {
  return {
    preview: ({ manifests, namespace, before, refresh }) =>
      inspector.preview(selectCandidates(kinds, namespace, manifests, before), refresh),
    diff: async ({ refresh, ...chosen }) => inspector.preview(await inspector.selectLive(chosen), refresh),
    history: async (object) => inspector.history(await inspector.locate(object)),
    outputs: async (object) => inspector.outputs(await inspector.locate(object)),
    state: async (object) => inspector.state(await inspector.locate(object)),
  };
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
