import { type Applied, mustBeReplaced, ownersAllowed, refuseProtected, withOwner } from "./apply-object";
import type { KubernetesClient } from "./client";
import type { ObjectInputs } from "./object-inputs";
import { ownerUidOf, wasCreated } from "./ownership";
import type { LiveObject } from "./types";

/** What an apply does with what has the object's name: `wait`, until that is gone, which is being deleted already. */
export type ApplyEffect = "create" | "adopt" | "update" | "replace" | "wait";

/** What an apply for these owners would do, if the object is not refused to them. @param former as the state has it */
export function effectOf(
  live: LiveObject | undefined,
  inputs: ObjectInputs,
  owners: readonly string[],
  former: Applied | undefined,
): ApplyEffect {
  if (live === undefined) return "create";
  const holder = ownerUidOf(live);
  if (holder === undefined && inputs.adopt === "replace") return "replace";
  if (live.metadata.deletionTimestamp !== undefined) return "wait";
  if (mustBeReplaced(live, inputs, ownersAllowed(live, owners, former), former)) return "replace";
  return holder === undefined ? "adopt" : "update";
}

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
