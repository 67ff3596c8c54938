import type { KeyObject } from "node:crypto";
import { errorMessageOf } from "../../providers/errors";
import type { LiveObject, Manifest } from "../../providers/kubernetes/client";
import type { Lookup } from "../../providers/kubernetes/lookup";
import { unescapeReserved } from "../../providers/literal";
import { obeyedAnnotations } from "../../stacks/contract/annotations";
import { parseDeclared } from "../../stacks/contract/declared";
import { type AnyKind, ownerDescription, ownerOf, parseObject, statusOf } from "../../stacks/contract/kind";
import { type KindObject, objectId, objectKey, stackName } from "../../stacks/contract/object";
import { readReferenced, referenceRecords } from "../../stacks/contract/references";
import { runProgram } from "../../stacks/contract/run-program";
import type { DeclaredManifest } from "../../stacks/contract/select-manifests";
import type { PreviewResult, StackEngine } from "../automation/engine";
import type { PlannedChange } from "../automation/planned-changes";
import { recordedObjects, recordedOwner } from "../automation/stack-state";
import { appliedMetadata } from "./applied-metadata";
import type { ClusterView } from "./cluster-view";
import type { ConflictFinder, Planned } from "./conflicts";
import { idOf, type PlannedResource, plannedResources, touchedObject } from "./effects";
import { givenFields } from "./fields";
import { proposedDigests } from "./plan-digest";
import { type Action, type ObjectPlan, UNCHECKED } from "./report";

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
    const planStack = candidate.removed ? planRemoval : planUpdate;
    const found = await planStack(options, candidate, plan.stack, live);
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
type StackPlan = Omit<Partial<ObjectPlan>, "resources"> & {
  changes: readonly PlannedChange[];
  resources: readonly PlannedResource[];
  claims?: readonly string[];
  held?: readonly string[];
  /** What could not be looked up. */
  unknown: readonly string[];
};

/** What is missing for the plan of an object whose status names a stack that the state lacks. */
const LOST = "its status names a stack that is not in the state: is PULUMI_BACKEND_URL right?";

/** @param what the error says */
function unknownOf(what: string, lookup: Lookup): string[] {
  return lookup.outcome === "unknown" ? [`${what} could not be looked up: ${errorMessageOf(lookup.error)}`] : [];
}

function objectOf(lookup: Lookup): LiveObject | undefined {
  return lookup.outcome === "found" ? lookup.object : undefined;
}

async function planRemoval(
  { engine, cluster, refresh, proposeWith, signal }: PlanOptions,
  { kind, manifest }: Candidate,
  stack: string,
  lookup: Lookup,
): Promise<StackPlan> {
  const live = objectOf(lookup);
  const annotated = live ?? manifest;
  const { paused, releases: orphaned } = obeyedAnnotations(annotated);
  // Digests are of what the operator previews, which trusts the state here.
  const options = proposeWith ? { plans: true } : { refresh };
  const preview = await engine.previewDestroy(stack, { ...options, signal });
  const { changes } = preview;
  const changing = { kind, uid: live?.metadata.uid, removed: true, orphaned };
  const resources = await plannedResources(changes, cluster, changing, []);
  const isReleased = resources.length > 0 && resources.every(({ shown }) => shown.operation === "release");
  const action = !preview.exists ? "none" : orphaned ? "orphan" : isReleased ? "release" : "delete";
  const notes = [...pauseNotes(annotated), ...lossNotes(resources)];
  const isLost = !preview.exists && live !== undefined && statusOf(live).stack !== undefined;
  const unknown = [
    ...unknownOf("the object", lookup),
    ...unknownResources(resources, cluster),
    ...(isLost ? [LOST] : []),
  ];
  if (!preview.exists && unknown.length === 0) notes.push("it has no stack, so it has no resources");
  const isProposed = proposeWith !== undefined && live !== undefined && unknown.length === 0;
  const owned = isProposed ? await cluster.owned(kind, live.metadata) : undefined;
  const operation = orphaned ? "release" : "delete";
  const previewed = { kind, object: annotated, operation, resources, references: [], preview, owned } as const;
  return {
    ...outcomeOf(preview, paused ? "paused" : action),
    ...(proposeWith && unknown.length === 0 && (await proposedDigests(proposeWith, previewed))),
    ...{ resources, notes, changes, unknown },
  };
}

function unknownResources(resources: readonly PlannedResource[], { unreachable }: ClusterView): string[] {
  if (unreachable !== undefined) return []; // the object is unknown for the same reason
  return resources.flatMap(({ shown, unknown }) =>
    unknown === undefined ? [] : [`${shown.name} could not be looked up: ${unknown}`],
  );
}

async function planUpdate(
  { engine, cluster, refresh, proposeWith, signal }: PlanOptions,
  { kind, manifest }: Candidate,
  stack: string,
  lookup: Lookup,
): Promise<StackPlan> {
  const live = objectOf(lookup);
  const owned = live && (await cluster.owned(kind, live.metadata));
  const stacked = live && statusOf(live).stack;
  // Where the cluster cannot tell, the state does.
  const isTold = stacked !== undefined && owned !== undefined;
  const state = isTold ? undefined : unescapeReserved(await engine.exportStack(stack, signal));
  const recorded = recordedObjects(state);
  const key = objectKey(manifest.metadata);
  const uid = live?.metadata.uid ?? recordedOwner(state) ?? NO_UID;
  const metadata = appliedMetadata(manifest.metadata, live);
  const object = await validateObject(kind, {
    ...manifest,
    metadata: { ...metadata, generation: live?.metadata.generation ?? 1, uid } as LiveObject["metadata"],
    ...(live?.status !== undefined && { status: live.status }),
  }).catch((error: unknown) => ({ invalid: errorMessageOf(error) }));
  const invalid = { action: "invalid", changes: [], resources: [], unknown: [] } as const;
  if ("invalid" in object) return { ...invalid, validatedBy: "schema", errors: [object.invalid] };
  const verdict = await cluster.validate(manifest);
  if (verdict.type === "invalid") return { ...invalid, validatedBy: "server", errors: [verdict.message] };
  const find = (target: Pick<Manifest, "metadata">) => cluster.look(target as Manifest);
  // Without it, the program would remove what depends on it.
  const referenced = await readReferenced({ find }, kind, object).catch((error: unknown) => errorMessageOf(error));
  if (typeof referenced === "string") {
    const unknown = [`what it refers to could not be looked up: ${referenced}`];
    return { changes: [], resources: [], unknown };
  }
  let unidentified: string | undefined;
  const identity = await cluster.identity().catch((error: unknown) => {
    unidentified = `which cluster it is could not be looked up: ${errorMessageOf(error)}`;
    return undefined;
  });
  const observed = await cluster.observed(kind, key);
  const context = {
    ...(identity !== undefined && { cluster: identity }),
    owner: ownerOf(kind, manifest, uid),
    owned: owned ?? recorded,
    recorded: new Set(stacked?.resources?.map(({ id }) => id) ?? recorded.map(objectId)),
    watched: observed ?? [],
    referenced,
  };
  const preview = await engine.preview(stack, () => runProgram(kind, object, context), {
    refresh: refresh || proposeWith !== undefined,
    plans: proposeWith !== undefined,
    signal,
    sdkRuntime: kind.capabilities.sdkRuntime,
  });
  const { changes } = preview;
  const changing = { kind, uid, removed: false, orphaned: false };
  const resources = await plannedResources(changes, cluster, changing, owned ?? []);
  const references = referenceRecords(kind, object, referenced);
  const isSeen = cluster.unreachable === undefined;
  const unknown = [
    ...unknownOf("the object", lookup),
    ...(unidentified === undefined ? [] : [unidentified]),
    ...(live !== undefined && owned === undefined ? ["its resources could not be listed"] : []),
    ...(isSeen && observed === undefined ? ["what it depends on could not be listed"] : []),
    ...unknownResources(resources, cluster),
    ...(stacked !== undefined && !preview.exists ? [LOST] : []),
  ];
  const found = { owned: live === undefined ? [] : owned, preview };
  const previewed = { kind, object, operation: "update", resources, references, ...found } as const;
  const { paused } = obeyedAnnotations({ metadata });
  const notes = [...pauseNotes({ metadata }), ...lossNotes(resources)];
  const action = preview.exists ? actionOf(resources) : "create";
  return {
    ...outcomeOf(preview, paused ? "paused" : action),
    ...(proposeWith && unknown.length === 0 && (await proposedDigests(proposeWith, previewed))),
    validatedBy: verdict.type === "valid" ? "server" : "schema",
    ...(verdict.type === "unknown" && isSeen && { notValidated: verdict.why }),
    unknown,
    resources,
    notes,
    changes,
    claims: kind.capabilities.claims?.of(object, context.watched) ?? [],
    held: live ? claimsOf(kind, live, context.watched) : [],
  };
}

function outcomeOf({ failures }: PreviewResult, action: Action): Pick<ObjectPlan, "action" | "errors"> {
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
