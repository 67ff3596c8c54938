import { ProviderHost } from "../../providers/host/server";
import { providersOf } from "../../providers/index";
import type { AnyKind } from "../../stacks/contract/kind";
import type { Workspace } from "../automation/pulumi";
import { openWorkspace, type WorkspaceSettings } from "../automation/workspace";

/** A workspace whose stacks the providers of this process serve. */
export interface OpenStacks {
  workspace: Workspace;
  host: ProviderHost;
  close(): Promise<void>;
}

/** Starts the providers of kinds, and opens a workspace that uses them. @throws what {@link openWorkspace} throws */
export async function openStacks(
  kinds: readonly AnyKind[],
  settings: Omit<WorkspaceSettings, "environment" | "attachment">,
): Promise<OpenStacks> {
  const host = await ProviderHost.start(providersOf(kinds));
  try {
    const { attachment } = host;
    const workspace = await openWorkspace({ ...settings, environment: process.env, attachment });
    const close = async () => {
      await workspace.pulumi.close();
      host.stop();
    };
    return { workspace, host, close };
  } catch (error) {
    host.stop(); // it would keep the process alive
    throw error;
  }
}
