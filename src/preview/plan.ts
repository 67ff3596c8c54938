import type { KeyObject } from "node:crypto";
import { errorMessageOf } from "../../providers/errors";
import type { LiveObject, Manifest } from "../../providers/kubernetes/client";
import type { Lookup } from "../../providers/kubernetes/lookup";
import { unescapeReserved } from "../../providers/literal";
import { obeyedAnnotations } from "../../stacks/contract/annotations";
import { parseDeclared } from "../../stacks/contract/declared";
import { programDigest } from "../../stacks/contract/digest";
import { type AnyKind, ownerDescription, parseObject, statusOf } from "../../stacks/contract/kind";
import { type KindObject, objectId, objectKey, stackName } from "../../stacks/contract/object";
import { referenceRecords } from "../../stacks/contract/references";
import { runProgram } from "../../stacks/contract/run-program";
import type { DeclaredManifest } from "../../stacks/contract/select-manifests";
import type { StackEngine } from "../automation/engine";
import { recordedObjects, recordedOwner } from "../automation/stack-state";
import { type PlanBasis, type PlanDigests, planDigests } from "../plan/digest";
import { idOf, type PlannedResource, touchedObject } from "../plan/effects";
import { givenFields } from "../plan/fields";
import { changesAnything, planDestroy, planUpdate, type StackPlan } from "../plan/plan";
import { UNCHECKED } from "../plan/resource-plan";
import { programContext, readInputs } from "../plan/view";
import { appliedMetadata } from "./applied-metadata";
import { type CallerView, callerView } from "./caller-view";
import type { ClusterView } from "./cluster-view";
import type { ConflictFinder, Planned } from "./conflicts";
import type { Action, ObjectPlan } from "./report";

/** An object whose stack is to be previewed. */
export interface Candidate extends Pick<DeclaredManifest, "kind" | "manifest"> {
  file?: string;
  /** Whether the object would be deleted. */
  removed: boolean;
  /** Why that cannot be told. */
  doubt?: string;
}

export interface PlanOptions {
  engine: Pick<StackEngine, "preview" | "previewDestroy" | "exportStack">;
  cluster: ClusterView;
  /** Compare with the live resources, so that the correction of drift shows. */
  refresh: boolean;
  /** The key of the digests that plans have then, for approvals. */
  proposeWith?: (() => Promise<KeyObject>) | undefined;
  signal?: AbortSignal | undefined;
}

/** The owner of an object that does not exist yet. */
const NO_UID = "00000000-0000-0000-0000-000000000000";

/** Plans an update of one object's stack, with its effects on other objects. */
export async function planObject(
  options: PlanOptions,
  findConflicts: ConflictFinder,
  candidate: Candidate,
): Promise<Planned> {
  const { kind, manifest, file } = candidate;
  const key = objectKey(manifest.metadata);
  const owner = ownerDescription(kind, key);
  const { name, namespace } = manifest.metadata;
  const plan: ObjectPlan = {
    apiVersion: manifest.apiVersion,
    kind: kind.kind,
    ...(namespace !== undefined && { namespace }),
    name,
    ...(file !== undefined && { file }),
    stack: stackName(kind, key),
    action: "none",
    resources: [],
    errors: [],
    notes: [],
  };
  const none = { owner, resources: [], kept: new Set<string>(), claims: [], held: new Set<string>(), conflicts: [] };
  if (candidate.doubt !== undefined) {
    return { ...none, unknown: [], plan: { ...plan, action: UNCHECKED, errors: [candidate.doubt] } };
  }
  try {
    const live = await options.cluster.get(kind, name, namespace);
    const planStack = candidate.removed ? previewRemoval : previewUpdate;
    const found = await planStack(options, candidate, live);
    const { changes, resources, claims = [], held = [], unknown, ...planned } = found;
    const isApplied = !candidate.removed && planned.action !== "invalid";
    const same = changes.filter(({ operation }) => operation === "same").map(touchedObject);
    const had = changes.map(({ old }) => idOf(old?.inputs.manifest));
    const { conflicts, overwritten, unknown: unseen } = await findConflicts(changes);
    for (const { change, shown } of resources) {
      const [fields, why] = [overwritten.get(change.urn), unseen.get(change.urn)];
      // A row that the records give to this object is there already.
      if (fields !== undefined && change.operation === "create") Object.assign(shown, { operation: "update", fields });
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

/** What the caller may not get is shown by what the program gave before and gives now; without that, by a word alone. */
async function hideFields(resources: readonly PlannedResource[], cluster: ClusterView): Promise<void> {
  for (const { live, shown, change } of resources) {
    if (live === undefined || change.operation === "delete" || (await cluster.mayRead(live))) continue;
    shown.fields = shown.operation === "adopt" ? [] : givenFields(change);
    shown.hidden = true;
  }
}

/** What is found out about a plan, and the changes behind it. */
type FoundPlan = Omit<Partial<ObjectPlan>, "resources"> &
  Pick<StackPlan, "changes" | "resources"> & {
    claims?: readonly string[];
    held?: readonly string[];
    /** What could not be looked up. */
    unknown: readonly string[];
  };

/** What is missing for the plan of an object whose status names a stack that the state lacks. */
const LOST = "its status names a stack that is not in the state: is PULUMI_BACKEND_URL right?";

async function previewRemoval(options: PlanOptions, { kind, manifest }: Candidate, lookup: Lookup): Promise<FoundPlan> {
  const { engine, cluster, refresh, proposeWith, signal } = options;
  const live = lookup.outcome === "found" ? lookup.object : undefined;
  const object = live ?? manifest;
  const { paused, releases: release } = obeyedAnnotations(object);
  const owned = live && proposeWith && (await cluster.owned(kind, live.metadata));
  const view = callerView(cluster, { kind, key: objectKey(object.metadata), live, owned, recorded: [] });
  const request = { kind, object, view, engine, signal, refresh, release, binds: proposeWith !== undefined };
  const plan = await planDestroy(request);
  const { changes, resources } = plan;
  const isReleased = resources.length > 0 && resources.every(({ shown }) => shown.operation === "release");
  const action = !plan.exists ? "none" : release ? "orphan" : isReleased ? "release" : "delete";
  const notes = [...pauseNotes(object), ...lossNotes(resources)];
  const isLost = !plan.exists && live !== undefined && statusOf(live).stack !== undefined;
  const unknown = unknownOf(lookup, view, plan, cluster, isLost);
  if (!plan.exists && unknown.length === 0) notes.push("it has no stack, so it has no resources");
  return {
    ...outcomeOf(plan, paused ? "paused" : action),
    ...(owned && unknown.length === 0 && (await digestsOf(options, kind, object, plan))),
    ...{ resources, notes, changes, unknown },
  };
}

/** In words, what could not be looked up. */
function unknownOf(
  lookup: Lookup,
  view: CallerView,
  { resources }: StackPlan,
  { unreachable }: ClusterView,
  isLost: boolean,
): string[] {
  const object = lookup.outcome === "unknown" ? [couldNot("the object", lookup.error)] : [];
  const single = resources.flatMap(({ shown, lookupError }) =>
    lookupError === undefined ? [] : [couldNot(shown.name, lookupError)],
  );
  // Without a cluster, resources are unknown for the same reason as the object.
  return [...object, ...view.unknown(), ...(unreachable === undefined ? single : []), ...(isLost ? [LOST] : [])];
}

function couldNot(what: string, error: unknown): string {
  return `${what} could not be looked up: ${errorMessageOf(error)}`;
}

/** The digests of the plan that the operator makes in a cluster that is as it is now; of what changes nothing, none. */
async function digestsOf(
  { proposeWith }: PlanOptions,
  kind: AnyKind,
  object: PlanBasis["object"],
  plan: StackPlan,
  references: PlanBasis["references"] = [],
): Promise<Partial<PlanDigests>> {
  if (proposeWith === undefined || plan.failures.length > 0 || !changesAnything(plan)) return {};
  const basis = { ...plan, kind, object, references, programDigest: programDigest(kind) };
  const { digest, group } = planDigests(await proposeWith(), basis);
  return { digest, group };
}

async function previewUpdate(options: PlanOptions, { kind, manifest }: Candidate, lookup: Lookup): Promise<FoundPlan> {
  const { engine, cluster, refresh, proposeWith, signal } = options;
  const live = lookup.outcome === "found" ? lookup.object : undefined;
  const key = objectKey(manifest.metadata);
  const owned = live && (await cluster.owned(kind, live.metadata));
  const stacked = live && statusOf(live).stack;
  // Where the cluster cannot tell, the state does.
  const isTold = stacked !== undefined && owned !== undefined;
  const state = isTold ? undefined : unescapeReserved(await engine.exportStack(stackName(kind, key), signal));
  const recorded = recordedObjects(state);
  const uid = live?.metadata.uid ?? recordedOwner(state) ?? NO_UID;
  const metadata = appliedMetadata(manifest.metadata, live);
  const object = await validateObject(kind, {
    ...manifest,
    metadata: { ...metadata, generation: live?.metadata.generation ?? 1, uid } as LiveObject["metadata"],
    ...(live?.status !== undefined && { status: live.status }),
  }).catch((error: unknown) => ({ invalid: errorMessageOf(error) }));
  const invalid = { action: "invalid" as const, changes: [], resources: [], unknown: [] };
  if ("invalid" in object) return { ...invalid, validatedBy: "schema" as const, errors: [object.invalid] };
  const verdict = await cluster.validate(manifest);
  if (verdict.type === "invalid") return { ...invalid, validatedBy: "server" as const, errors: [verdict.message] };
  const view = callerView(cluster, { kind, key, live, owned, recorded });
  const inputs = await readInputs(view, kind, object).catch((error: unknown) => couldNot("what it refers to", error));
  // Without that, the program would remove what depends on it.
  if (typeof inputs === "string") return { changes: [], resources: [], unknown: [inputs] };
  const ids = stacked?.resources?.map(({ id }) => id) ?? recorded.map(objectId);
  const program = () => runProgram(kind, object, programContext(kind, object, inputs, ids));
  const request = { kind, object, view, engine, signal, program, refresh, binds: proposeWith !== undefined };
  const plan = await planUpdate(request);
  const { changes, resources } = plan;
  const unknown = unknownOf(lookup, view, plan, cluster, stacked !== undefined && !plan.exists);
  const references = referenceRecords(kind, object, inputs.referenced);
  const { paused } = obeyedAnnotations({ metadata });
  const action = plan.exists ? actionOf(resources) : "create";
  const isSeen = cluster.unreachable === undefined;
  return {
    ...outcomeOf(plan, paused ? "paused" : action),
    ...(unknown.length === 0 && (await digestsOf(options, kind, object, plan, references))),
    validatedBy: verdict.type === "valid" ? "server" : "schema",
    ...(verdict.type === "unknown" && isSeen && { notValidated: verdict.why }),
    notes: [...pauseNotes({ metadata }), ...lossNotes(resources)],
    claims: kind.capabilities.claims?.of(object, inputs.watched) ?? [],
    held: live ? claimsOf(kind, live, inputs.watched) : [],
    ...{ unknown, resources, changes },
  };
}

function outcomeOf({ failures }: StackPlan, action: Action): Pick<ObjectPlan, "action" | "errors"> {
  return {
    action: failures.length > 0 ? "failed" : action,
    errors: failures.map(({ resource, message }) => (resource === undefined ? message : `${resource}: ${message}`)),
  };
}

/** What an object of the cluster holds: what it claims, once it was updated. */
export function claimsOf(kind: AnyKind, live: LiveObject, watched: readonly LiveObject[] = []): string[] {
  const { claims } = kind.capabilities;
  if (claims === undefined || statusOf(live).stack === undefined) return [];
  try {
    return claims.of(parseObject(kind, live), watched);
  } catch {
    return []; // one that its kind does not take any more holds nothing
  }
}

/** An object's action is the most severe action of its resources. */
function actionOf(resources: readonly PlannedResource[]): Action {
  if (resources.some(({ shown }) => shown.operation === "replace")) return "replace";
  return resources.length > 0 ? "update" : "none";
}

/** What people may not think of: a namespace is deleted with its contents. */
function lossNotes(resources: readonly PlannedResource[]): string[] {
  return resources.flatMap(({ change, shown }) => {
    const manifest = change.old?.inputs.manifest as Manifest | undefined;
    if (manifest?.kind !== "Namespace" || manifest.apiVersion !== "v1") return [];
    const { name } = manifest.metadata;
    if (shown.operation === UNCHECKED) return [`the namespace ${name} may be deleted with all that is in it`];
    return shown.operation === "delete" ? [`the namespace ${name} is deleted with all that is in it`] : [];
  });
}

function pauseNotes(object: Pick<Manifest, "metadata">): string[] {
  const { paused, problem } = obeyedAnnotations(object);
  if (problem !== undefined) return [`paused: ${problem}`];
  return paused ? ["paused: no update until the annotation kindstack.dev/paused is removed"] : [];
}

/** Names as the API server takes them for objects of any kind. */
const NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const MAX_NAME = 253;

/**
 * Validates an object by the kind's schema and rules, as far as that goes without the API server, whose admission is not
 * asked.
 *
 * @returns the object with its schema's defaults
 * @throws Error why it may not be previewed
 */
async function validateObject(kind: AnyKind, manifest: LiveObject): Promise<KindObject> {
  const { name } = manifest.metadata;
  if (name.length > MAX_NAME || !NAME.test(name)) throw new Error(`metadata.name: "${name}" is no name of an object`);
  return parseDeclared(kind, manifest);
}
