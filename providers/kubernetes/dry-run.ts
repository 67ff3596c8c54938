import { refuseProtected, withOwner } from "./apply-object";
import type { KubernetesClient } from "./client";
import type { ObjectInputs } from "./object-inputs";
import { wasCreated } from "./ownership";
import type { LiveObject } from "./types";

/** Asks the API server to do all of an apply but to keep its result, which is returned. @throws ApiError when it is refused */
export async function dryRunApply(
  client: KubernetesClient,
  inputs: ObjectInputs,
  live: LiveObject | undefined,
  signal: AbortSignal,
): Promise<LiveObject> {
  const { initial } = inputs;
  refuseProtected(inputs.manifest);
  const begins = live === undefined && initial !== undefined;
  const given = begins ? { ...inputs, manifest: initial.manifest } : inputs;
  const manager = begins ? { fieldManager: initial.fieldManager } : {};
  const manifest = withOwner(given, live, live === undefined || wasCreated(live));
  return (await client.apply(manifest, { dryRun: true, signal, ...manager })).object;
}
