import type { StateConfig } from "../config";
import { type ResolveOptions, resolveBinary } from "./resolve";

const IN_EVERY_BUILD = /^(file|postgres):/;

/**
 * Finds or builds Pulumi's engine: the one that `KINDSTACK_ENGINE` names, else one that knows the state's backend and key
 * service. Those of clouds take a larger build.
 *
 * @throws ToolUnavailableError
 */
export function resolveEngine({ backendUrl, protection }: StateConfig, options: ResolveOptions): Promise<string> {
  const needsClouds = protection.keyService !== undefined || !IN_EVERY_BUILD.test(backendUrl);
  const isNamed = Boolean(process.env.KINDSTACK_ENGINE);
  return resolveBinary(needsClouds && !isNamed ? "engine-clouds" : "engine", options);
}
