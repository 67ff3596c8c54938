import { errorMessageOf } from "../../providers/errors";
import type { Lookup } from "../../providers/kubernetes/types";
import { ownerDescription } from "../../stacks/contract/kind";
import { objectKey } from "../../stacks/contract/object";
import { idOf, type PlannedResource, touchedObject } from "../plan/effects";
import { givenFields } from "../plan/fields";
import type { ConflictFinder } from "../plan/obstacles";
import { UNCHECKED } from "../plan/resource-plan";
import type { ClusterView } from "./cluster-view";
import type { Planned } from "./conflicts";
import { previewDeclared } from "./preview-declared";
import { type Candidate, type FoundPlan, type PlanOptions, previewRemoval, previewUpdate } from "./preview-update";
import { type Action, newPlan } from "./report";

/** Plans an update of one object's stack, with its effects on other objects. */
export async function previewObject(
  options: PlanOptions,
  findConflicts: ConflictFinder,
  candidate: Candidate,
): Promise<Planned> {
  const { kind, manifest, file } = candidate;
  const { name, namespace } = manifest.metadata;
  const plan = newPlan(kind, manifest.apiVersion, manifest.metadata, file);
  const owner = ownerDescription(kind, objectKey(manifest.metadata));
  const none = { owner, resources: [], kept: new Set<string>(), claims: [], held: new Set<string>(), conflicts: [] };
  const without = (action: Action, error: string): Planned => {
    return { ...none, unknown: [], plan: { ...plan, action, errors: [error] } };
  };
  if (candidate.doubt !== undefined) return without(UNCHECKED, candidate.doubt);
  if (candidate.refused !== undefined) return without("invalid", candidate.refused);
  try {
    const listed = candidate.live && ({ outcome: "found", object: candidate.live } as const);
    const live = listed ?? (await options.cluster.get(kind, name, namespace));
    const found = await planStack(options, candidate, live);
    const { changes, resources, claims = [], held = [], unknown, ...planned } = found;
    const isApplied = !candidate.removed && planned.action !== "invalid";
    const same = changes.filter(({ operation }) => operation === "same").map(touchedObject);
    const had = changes.map(({ old }) => idOf(old?.inputs.manifest));
    const { conflicts, overwritten, unknown: errors } = await findConflicts(resources);
    const unseen = new Map([...errors].map(([urn, error]) => [urn, errorMessageOf(error)]));
    for (const { change, shown } of resources) {
      const [fields, why] = [overwritten.get(change.urn), unseen.get(change.urn)];
      // A row that the records give to this object is there already. The history of its creation has the same word.
      if (fields !== undefined && change.operation === "create") Object.assign(shown, { operation: "adopt", fields });
      if (why !== undefined && shown.operation === "create") {
        Object.assign(shown, { operation: UNCHECKED, notChecked: `whether it is created: ${why}` });
      }
    }
    await hideFields(resources, options.cluster);
    return {
      owner,
      plan: { ...plan, ...planned, resources: resources.map(({ shown }) => shown) },
      resources,
      claims,
      held: new Set([...held, ...had.filter((id) => id !== undefined)]),
      kept: new Set(same.filter((id) => id !== undefined)),
      ...(isApplied && { applied: manifest, isNew: live.outcome === "absent" }),
      conflicts,
      unknown: [...new Set([...unknown, ...unseen.values()])],
    };
  } catch (error) {
    options.signal?.throwIfAborted();
    return without("failed", errorMessageOf(error));
  }
}

function planStack(options: PlanOptions, candidate: Candidate, live: Lookup): Promise<FoundPlan> {
  const { declared } = candidate;
  if (declared !== undefined) return previewDeclared(options, { ...candidate, declared }, live);
  return candidate.removed ? previewRemoval(options, candidate, live) : previewUpdate(options, candidate, live);
}

/** What the caller may not get is shown by what the program gave before and gives now; without that, by a word alone. */
async function hideFields(resources: readonly PlannedResource[], cluster: ClusterView): Promise<void> {
  for (const { live, shown, change } of resources) {
    if (live === undefined || change.operation === "delete" || (await cluster.mayRead(live))) continue;
    shown.fields = shown.operation === "adopt" ? [] : givenFields(change);
    shown.hidden = true;
  }
}
