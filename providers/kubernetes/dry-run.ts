import { refuseProtected, withOwner } from "./apply-object";
import { FIELD_MANAGER, type KubernetesClient } from "./client";
import type { ObjectInputs } from "./object-inputs";
import { lastingOwnerOf, withLastingOwner } from "./owner-references";
import { wasCreated } from "./ownership";
import type { LiveObject, Manifest } from "./types";

/** Asks the API server to do all of an apply but to keep its result, which is returned. @throws ApiError when it is refused */
export async function dryRunApply(
  client: KubernetesClient,
  inputs: ObjectInputs,
  live: LiveObject | undefined,
  signal: AbortSignal,
): Promise<LiveObject> {
  refuseProtected(inputs.manifest);
  const { manifest, fieldManager = FIELD_MANAGER }: { manifest: Manifest; fieldManager?: string } =
    (live === undefined && inputs.initial) || inputs;
  const lasting = withLastingOwner(manifest, lastingOwnerOf(live));
  const applied = withOwner({ ...inputs, manifest: lasting }, live, live === undefined || wasCreated(live), undefined);
  return (await client.apply(applied, { dryRun: true, signal, fieldManager })).object;
}
