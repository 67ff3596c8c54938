import { ClassifiedError, errorMessageOf, RetryableError } from "../../providers/errors";
import type { ProviderHost } from "../../providers/host/server";
import { type CommandResult, runCommand } from "./command";
import type { Workspace } from "./workspace";

/** What every call of the CLI needs. */
export interface PulumiOptions {
  workspace: Workspace;
  host: ProviderHost;
  /** After this long a command is interrupted. */
  timeoutMs: number;
}

const READS_CONFIGURATION: readonly string[] = ["up", "preview"];

/**
 * Runs one command of the CLI in the workspace, with this process's providers.
 *
 * @param call with `backendUrl`, another backend than the workspace's; with `savesOnce`, the state is not saved after each
 *   step but at the end
 * @throws RetryableError `NoPulumi` when it could not be started; what {@link runCommand} throws
 */
export async function runPulumi(
  { workspace, host, timeoutMs }: PulumiOptions,
  args: readonly string[],
  call: { signal?: AbortSignal | undefined; backendUrl?: string | undefined; savesOnce?: boolean } = {},
): Promise<CommandResult> {
  const [name = "", ...rest] = args;
  const configFile = READS_CONFIGURATION.includes(name) ? ["--config-file", workspace.configFile] : [];
  let forget = () => {};
  try {
    return await runCommand(workspace.pulumi, [name, ...rest, ...configFile, "--non-interactive", "--color", "never"], {
      cwd: workspace.projectDirectory,
      env: {
        ...workspace.environment,
        PULUMI_DEBUG_PROVIDERS: host.attachment,
        ...(call.backendUrl !== undefined && { PULUMI_BACKEND_URL: call.backendUrl }),
        ...(call.savesOnce && { PULUMI_SKIP_CHECKPOINTS: "true" }),
      },
      timeoutMs,
      ...(call.signal && { signal: call.signal }),
      onStart: (pid) => {
        forget = workspace.recordProcess(pid);
      },
    });
  } catch (error) {
    if (error instanceof ClassifiedError) throw error;
    // It may be there again, as may the memory or the process number that it lacked; nothing would tell us.
    throw new RetryableError("NoPulumi", `the Pulumi CLI could not be started: ${errorMessageOf(error)}`);
  } finally {
    forget();
  }
}
