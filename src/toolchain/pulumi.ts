import type { PulumiBinary } from "../automation/workspace";
import { type ResolveOptions, resolveBinary } from "./resolve";
import { ToolUnavailableError } from "./tool";

/** Used in place of a file name: the CLI runs every command. */
const NONE = "none";

/**
 * Finds what runs Pulumi's commands: the server if it exists or can be built, else the CLI. With `KINDSTACK_PULUMI`,
 * that CLI runs every command, unless a server is named as well.
 *
 * @param options with `onFallback`, told why there is no server
 * @throws ToolUnavailableError when there is no CLI either, or what a variable names cannot be used
 */
export async function resolvePulumi(
  options: ResolveOptions & { onFallback?: (reason: string) => void },
): Promise<PulumiBinary> {
  const { KINDSTACK_PULUMI, KINDSTACK_PULUMI_SERVER: named } = process.env;
  const useCli = async (reason: string) => {
    options.onFallback?.(reason);
    return { cli: await resolveBinary("pulumi", { ...options, make: true }) };
  };
  if (named === NONE) return useCli("KINDSTACK_PULUMI_SERVER=none");
  if (!named && KINDSTACK_PULUMI) return useCli("KINDSTACK_PULUMI names a CLI, and no server is named");
  try {
    return { server: await resolveBinary("pulumi-server", options) };
  } catch (error) {
    if (named || !(error instanceof ToolUnavailableError)) throw error;
    return useCli(error.message);
  }
}
