import type { StateConfig } from "../config";
import { type ResolveOptions, resolveBinary } from "./resolve";

const IN_EVERY_BUILD = /^(file|postgres):/;

/** The value of `KINDSTACK_ENGINE` that has updates run by Pulumi's Automation API and CLI instead. */
const AUTOMATION_API = "automation-api";

export function usesAutomationApi(): boolean {
  return process.env.KINDSTACK_ENGINE === AUTOMATION_API;
}

/**
 * Finds or builds Pulumi's engine: the engine that `KINDSTACK_ENGINE` names, else one that supports the state's backend and key
 * service. Backends of clouds need a larger build. With {@link AUTOMATION_API}, the CLI.
 *
 * @param state without, an engine for files and a passphrase
 * @throws ToolUnavailableError
 */
export function resolveEngine(options: ResolveOptions, state?: StateConfig): Promise<string> {
  if (usesAutomationApi()) return resolveBinary("pulumi", options);
  const isLocal = state === undefined || (!state.protection.keyService && IN_EVERY_BUILD.test(state.backendUrl));
  if (!isLocal) return resolveBinary("engine-clouds", options);
  const found = resolveBinary("engine", options);
  return process.env.KINDSTACK_ENGINE ? found.catch(() => resolveBinary("engine-clouds", options)) : found;
}
