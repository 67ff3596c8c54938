import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { KubeConfig } from "@kubernetes/client-node";
import { errorMessageOf } from "../../providers/errors";
import { ProviderHost } from "../../providers/host/server";
import { providers } from "../../providers/index";
import { connectKubernetes, disconnectKubernetes } from "../../providers/kubernetes/connection";
import { closePool } from "../../providers/postgres/pool";
import { fileBackendDirectory } from "../automation/file-backend";
import { StackReader } from "../automation/stack-reader";
import { openWorkspace, type Workspace } from "../automation/workspace";
import { readStateConfig } from "../config";
import { ClusterView } from "../preview/cluster-view";
import { resolvePulumi } from "../toolchain/pulumi";
import { Progress } from "./progress";

/** What a command that only looks works with. */
export interface Inspection {
  reader: StackReader;
  cluster: ClusterView;
  /** For namespaced objects that name no namespace: the kubeconfig's, as kubectl takes it. */
  namespace: string;
  /** Aborted when the user interrupts. */
  signal: AbortSignal;
  /** What the user should know of where this looked. */
  notes: string[];
}

const TIMEOUT_MS = 10 * 60_000;

/** The environment variables of {@link withInspection}, for a command's help. */
export const INSPECTION_HELP = `
Environment:
  KUBECONFIG                        the cluster, if there is one to be asked; read rights suffice
  PULUMI_BACKEND_URL                where the operator keeps the state
  PULUMI_CONFIG_PASSPHRASE[_FILE], KINDSTACK_SECRETS_PROVIDER
                                    what protects the state
  PSQL_HOST, …                      the database of PostgresWriters, as for \`kindstack run\``;

/**
 * Runs something with the state, the cluster and the providers at hand.
 *
 * It works in a folder of its own: an operator on the same machine may be at work in the one that is configured.
 */
export async function withInspection<T>(run: (inspection: Inspection) => Promise<T>): Promise<T> {
  const stop = new AbortController();
  const onStop = () => stop.abort(new Error("interrupted"));
  for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, onStop);
  const state = readStateConfig(process.env);
  const directory = await mkdtemp(join(tmpdir(), "kindstack-inspection-"));
  const host = new ProviderHost(providers);
  const progress = new Progress();
  let workspace: Workspace | undefined;
  try {
    // To make a server takes longer than a look.
    const pulumi = await resolvePulumi({ signal: stop.signal, observe: progress.observeTools, make: false });
    await host.start();
    workspace = await openWorkspace({
      pulumi,
      directory,
      backendUrl: state.backendUrl,
      protection: state.protection,
      environment: process.env,
      attachment: host.attachment,
      log: console,
    });
    const { cluster, namespace } = await openCluster();
    return await run({
      reader: new StackReader({ workspace, host, timeoutMs: TIMEOUT_MS }),
      cluster,
      namespace,
      signal: stop.signal,
      notes: notesOn(state.backendUrl, cluster),
    });
  } finally {
    for (const name of ["SIGINT", "SIGTERM"] as const) process.off(name, onStop);
    await workspace?.pulumi.close();
    host.stop();
    await closePool();
    await disconnectKubernetes();
    await rm(directory, { recursive: true, force: true });
  }
}

/** A kubeconfig that cannot be read is as good as none. */
async function openCluster(): Promise<{ cluster: ClusterView; namespace: string }> {
  try {
    const config = new KubeConfig();
    config.loadFromDefault();
    const namespace = config.getContextObject(config.getCurrentContext())?.namespace || "default";
    return { cluster: await ClusterView.open(connectKubernetes()), namespace };
  } catch (error) {
    return {
      cluster: ClusterView.none(`the kubeconfig cannot be read: ${errorMessageOf(error)}`),
      namespace: "default",
    };
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
