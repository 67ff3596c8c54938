import { declareAgain } from "../../providers/declared-again";
import { errorMessageOf } from "../../providers/errors";
import type { Manifest } from "../../providers/kubernetes/client";
import { isSecret } from "../../providers/kubernetes/object-types";
import { known, type Lookup } from "../../providers/kubernetes/types";
import { holds, MASKED } from "../../providers/literal";
import { objectKey } from "../../stacks/contract/object";
import type { PlannedChange } from "../automation/planned-changes";
import { typeWord } from "../automation/urn";
import { type Admitted, admit, checkPlain } from "../fleet/admit";
import type { PlannedResource } from "../plan/effects";
import { planUpdate } from "../plan/plan";
import { UNCHECKED } from "../plan/resource-plan";
import { callerView } from "./caller-view";
import type { ClusterView } from "./cluster-view";
import {
  type Candidate,
  couldNot,
  type FoundPlan,
  foundPlan,
  NOTHING,
  type PlanOptions,
  previewRemoval,
  withRefused,
} from "./preview-update";
import { actionOf } from "./report";

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
  if (outcome.type !== "declared") return { ...NOTHING, action: outcome.type, errors: [outcome.message] };
  const live = await known(lookup).catch(() => undefined);
  if (live === undefined) {
    const isUnknown = lookup.outcome === "unknown";
    const why = isUnknown ? couldNot("the object", lookup.error) : "it was deleted after it was fetched";
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
    return [{ change, shown: { name, type: typeWord(type), ...hidden, fields: [] } }];
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
  if (isOfSecret || secrets.has(name) || holds(old, MASKED)) return "secrets are not compared with declarations";
  const isThere = old !== undefined || resource?.live !== undefined || resource?.lookupError !== undefined;
  if (!isThere || inputs.manifest === undefined) return undefined;
  const may = await Promise.all(manifests.map((one) => cluster.mayRead(one)));
  return may.every(Boolean) ? undefined : "you may not get it, so it is not compared with declarations";
}
