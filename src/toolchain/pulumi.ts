import type { PulumiBinaries } from "../automation/workspace";
import { type ResolveOptions, resolveBinary } from "./resolve";
import { ToolUnavailableError } from "./tool";

/** In place of a file's name: the CLI runs every command. */
const NONE = "none";

/**
 * Finds what runs Pulumi's commands: the CLI, and the server where it is there or can be made. A CLI that is named by
 * `KINDSTACK_PULUMI` runs every command unless a server is named as well.
 *
 * @param options with `onFallback`, told why there is no server
 * @throws ToolUnavailableError when there is no CLI, or what a variable names cannot be used
 */
export async function resolvePulumi(
  options: ResolveOptions & { onFallback?: (reason: string) => void },
): Promise<PulumiBinaries> {
  const environment = options.environment ?? process.env;
  const { path: cli } = await resolveBinary("pulumi", { ...options, make: true });
  const named = environment.KINDSTACK_PULUMI_SERVER;
  if (named === NONE) return fallBack("KINDSTACK_PULUMI_SERVER=none");
  if (!named && environment.KINDSTACK_PULUMI) return fallBack("KINDSTACK_PULUMI names a CLI, and no server is named");
  try {
    return { cli, server: (await resolveBinary("pulumi-server", options)).path };
  } catch (error) {
    if (named || !(error instanceof ToolUnavailableError)) throw error;
    return fallBack(error.message);
  }

  function fallBack(reason: string): PulumiBinaries {
    options.onFallback?.(reason);
    return { cli };
  }
}
