import type { StateConfig } from "../config";
import { type ResolveOptions, resolveBinary } from "./resolve";

const IN_EVERY_BUILD = /^(file|postgres):/;

/**
 * Finds or builds Pulumi's engine: the one that `KINDSTACK_ENGINE` names, else one that knows the state's backend and key
 * service. Those of clouds take a larger build.
 *
 * @param state without, an engine for files and a passphrase
 * @throws ToolUnavailableError
 */
export function resolveEngine(options: ResolveOptions, state?: StateConfig): Promise<string> {
  const isLocal = state === undefined || (!state.protection.keyService && IN_EVERY_BUILD.test(state.backendUrl));
  if (!isLocal) return resolveBinary("engine-clouds", options);
  const found = resolveBinary("engine", options);
  return process.env.KINDSTACK_ENGINE ? found.catch(() => resolveBinary("engine-clouds", options)) : found;
}
