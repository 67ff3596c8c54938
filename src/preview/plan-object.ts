import { declareAgain } from "../../providers/declared-again";
import { errorMessageOf } from "../../providers/errors";
import type { Manifest } from "../../providers/kubernetes/client";
import { isSecret } from "../../providers/kubernetes/object-types";
import { known, type Lookup } from "../../providers/kubernetes/types";
import { MASKED } from "../../providers/literal";
import { ownerDescription } from "../../stacks/contract/kind";
import { objectKey } from "../../stacks/contract/object";
import type { PlannedChange } from "../automation/planned-changes";
import { typeWord } from "../automation/urn";
import { type Admitted, admit, checkPlain } from "../fleet/admit";
import { idOf, type PlannedResource, touchedObject } from "../plan/effects";
import { givenFields } from "../plan/fields";
import type { ConflictFinder } from "../plan/obstacles";
import { planUpdate } from "../plan/plan";
import { UNCHECKED } from "../plan/resource-plan";
import { callerView } from "./caller-view";
import type { ClusterView } from "./cluster-view";
import type { Planned } from "./conflicts";
import {
  type Candidate,
  type FoundPlan,
  foundPlan,
  type PlanOptions,
  previewRemoval,
  previewUpdate,
  withRefused,
} from "./object-preview";
import { actionOf, newPlan } from "./report";

/** Plans an update of one object's stack, with its effects on other objects. */
export async function planObject(
  options: PlanOptions,
  findConflicts: ConflictFinder,
  candidate: Candidate,
): Promise<Planned> {
  const { kind, manifest, file } = candidate;
  const { name, namespace } = manifest.metadata;
  const plan = newPlan(kind, manifest.apiVersion, manifest.metadata, file);
  const owner = ownerDescription(kind, objectKey(manifest.metadata));
  const none = { owner, resources: [], kept: new Set<string>(), claims: [], held: new Set<string>(), conflicts: [] };
  if (candidate.doubt !== undefined) {
    return { ...none, unknown: [], plan: { ...plan, action: UNCHECKED, errors: [candidate.doubt] } };
  }
  if (candidate.refused !== undefined) {
    return { ...none, unknown: [], plan: { ...plan, action: "invalid", errors: [candidate.refused] } };
  }
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
    return { ...none, unknown: [], plan: { ...plan, action: "failed", errors: [errorMessageOf(error)] } };
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

const NOTHING = { changes: [], resources: [] };

/**
 * Plans an update of a live object from declarations that the caller sends. The caller learns of no difference from objects without
 * the right to get these: a stranger could try values until nothing differs.
 */
export async function previewDeclared(
  options: PlanOptions,
  candidate: Candidate & Required<Pick<Candidate, "declared">>,
  lookup: Lookup,
): Promise<FoundPlan> {
  const { engine, cluster, refresh, proposeWith, signal } = options;
  const { kind, declared } = candidate;
  const { outcome, uid, generation, providers } = declared;
  if (outcome.type === "unchecked") return { ...NOTHING, unknown: [outcome.message] };
  if (outcome.type !== "declared") return { ...NOTHING, action: outcome.type, errors: [outcome.message], unknown: [] };
  const live = await known(lookup).catch(() => undefined);
  if (live === undefined) {
    const why =
      lookup.outcome === "unknown"
        ? `the object could not be looked up: ${errorMessageOf(lookup.error)}`
        : "it was deleted after it was fetched";
    return { ...NOTHING, unknown: [why] };
  }
  if (live.metadata.deletionTimestamp !== undefined) return previewRemoval(options, candidate, lookup);
  if (live.metadata.uid !== uid || live.metadata.generation !== generation) {
    return { ...NOTHING, unknown: ["it has changed since it was fetched"] };
  }
  const owned = proposeWith && (await cluster.owned(kind, live.metadata));
  const view = callerView(cluster, { kind, key: objectKey(live.metadata), live, owned, recorded: [] });
  let admitted: Admitted;
  try {
    checkPlain("spec", outcome.spec);
    admitted = admit({ kind, live, cluster: await view.cluster(), providers }, outcome.resources);
  } catch (error) {
    return { ...NOTHING, unknown: [`its declarations are not previewed: ${errorMessageOf(error)}`] };
  }
  const program = () => declareAgain(admitted.resources);
  // Of a plan, its digest alone depends on that: with another spec than it is in the end, it is the digest of no plan.
  const object = outcome.spec === undefined ? live : { ...live, spec: outcome.spec };
  const request = { kind, object, view, engine, signal, program, refresh, binds: proposeWith !== undefined };
  const plan = await planUpdate(request);
  const resources = await hideUnreadable(plan.changes, plan.resources, admitted, cluster);
  const action = plan.exists ? actionOf(resources.map(({ shown }) => shown)) : "create";
  const found = await foundPlan(options, { kind, object, lookup, view }, { ...plan, resources }, action);
  const hidden = resources.flatMap(({ shown }) => (shown.hidden ? [`${shown.name}: ${shown.notChecked}`] : []));
  const left = admitted.notPreviewed.map((what) => `not previewed: ${what}`);
  const whole = { ...found, unknown: [...found.unknown, ...left, ...hidden] };
  return outcome.refused === undefined ? whole : withRefused(whole, [outcome.refused]);
}

/** In place of what a comparison would tell of what the caller may not see, that it is not compared, whatever came of it. */
async function hideUnreadable(
  changes: readonly PlannedChange[],
  resources: readonly PlannedResource[],
  { secrets }: Admitted,
  cluster: ClusterView,
): Promise<PlannedResource[]> {
  const planned = new Map(resources.map((resource) => [resource.change.urn, resource]));
  const shown = changes.map(async (change): Promise<PlannedResource[]> => {
    const resource = planned.get(change.urn);
    const why = await unreadable(change, resource, secrets, cluster);
    if (why === undefined) return resource === undefined ? [] : [resource];
    const { name, type } = change;
    const hidden = { operation: UNCHECKED, notChecked: why, hidden: true } as const;
    return [{ change, refused: false, shown: { name, type: typeWord(type), ...hidden, fields: [] } }];
  });
  return (await Promise.all(shown)).flat().sort((a, b) => (a.shown.name < b.shown.name ? -1 : 1));
}

async function unreadable(
  { name, operation, inputs, old }: PlannedChange,
  resource: PlannedResource | undefined,
  secrets: ReadonlySet<string>,
  cluster: ClusterView,
): Promise<string | undefined> {
  const manifests = [inputs?.manifest, old?.inputs.manifest].filter((one) => one !== undefined) as Manifest[];
  const isOfSecret = manifests.some((one) => typeof one === "string" || isSecret(one));
  if (operation === "delete" || inputs === undefined) return undefined; // tells nothing but that
  if (isOfSecret || secrets.has(name) || holdsSecret(old)) return "secrets are not compared with declarations";
  const isThere = old !== undefined || resource?.live !== undefined || resource?.lookupError !== undefined;
  if (!isThere || inputs.manifest === undefined) return undefined;
  const may = await Promise.all(manifests.map((one) => cluster.mayRead(one)));
  return may.every(Boolean) ? undefined : "you may not get it, so it is not compared with declarations";
}

function holdsSecret(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return value === MASKED;
  return Object.values(value).some(holdsSecret);
}
