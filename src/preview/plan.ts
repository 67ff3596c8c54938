import { isDeepStrictEqual } from "node:util";
import { errorMessageOf } from "../../providers/errors";
import type { LiveObject, Manifest } from "../../providers/kubernetes/client";
import { isObjectOutputs } from "../../providers/kubernetes/object";
import { unescapeReserved } from "../../providers/literal";
import { obeyedAnnotations } from "../../stacks/contract/annotations";
import type { ProgramContext } from "../../stacks/contract/capabilities";
import { apiVersionsOf, convertObject } from "../../stacks/contract/convert";
import { ownerDescription, statusOf } from "../../stacks/contract/kind";
import { objectId, objectKey, stackName } from "../../stacks/contract/object";
import type { DeclaredManifest } from "../../stacks/contract/select-manifests";
import type { PreviewResult, StackEngine } from "../automation/engine";
import type { PlannedChange } from "../automation/planned-changes";
import type { StackState } from "../automation/stack-state";
import type { ClusterView } from "./cluster-view";
import { type ConflictFinder, type Planned, touchedObject } from "./conflicts";
import { changedFields } from "./fields";
import type { Action, ObjectPlan, ResourcePlan } from "./report";
import { validateObject } from "./validate";

/** An object whose stack is to be previewed. */
export interface Candidate extends Pick<DeclaredManifest, "kind" | "manifest"> {
  file?: string;
  /** Whether the object would be deleted. */
  removed: boolean;
}

export interface PlanOptions {
  engine: Pick<StackEngine, "preview" | "previewDestroy" | "exportStack">;
  cluster: ClusterView;
  /** Compare with the live resources, so that the correction of drift shows. */
  refresh: boolean;
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
  try {
    const live = await options.cluster.find(kind, name, namespace).catch(() => undefined);
    const planStack = candidate.removed ? planRemoval : planUpdate;
    const { changes, ...planned } = await planStack(options, candidate, plan.stack, live);
    const touched = new Map(
      changes.flatMap((change) => {
        const id = touchedObject(change);
        return id === undefined ? [] : [[id, change.operation]];
      }),
    );
    return { plan: { ...plan, ...planned }, owner, touched, ...(await findConflicts(changes)) };
  } catch (error) {
    options.signal?.throwIfAborted();
    const failed: ObjectPlan = { ...plan, action: "failed", errors: [errorMessageOf(error)] };
    return { plan: failed, owner, touched: new Map(), conflicts: [], unseen: [] };
  }
}

/** What is found out about a plan, and the changes behind it. */
type StackPlan = Partial<ObjectPlan> & { changes: readonly PlannedChange[] };

async function planRemoval(
  { engine, refresh, signal }: PlanOptions,
  { manifest }: Candidate,
  stack: string,
  live: LiveObject | undefined,
): Promise<StackPlan> {
  const annotated = live ?? manifest;
  const released = obeyedAnnotations(annotated).releases;
  const preview = await engine.previewDestroy(stack, { refresh, signal });
  const notes = pauseNotes(annotated);
  if (!preview.exists) notes.push("it has no stack, so it has no resources");
  const resources = resourcesOf(preview, []);
  if (released) for (const resource of resources) resource.operation = "release";
  const action = !preview.exists ? "none" : released ? "release" : "delete";
  return { ...outcomeOf(preview, action), resources, notes, changes: preview.changes };
}

async function planUpdate(
  { engine, cluster, refresh, signal }: PlanOptions,
  { kind, manifest: written }: Candidate,
  stack: string,
  live: LiveObject | undefined,
): Promise<StackPlan> {
  const isServed = apiVersionsOf(kind).includes(written.apiVersion); // else it is refused below
  const manifest = isServed ? convertObject(kind, written) : written;
  const owned = live && (await cluster.owned(kind, live.metadata));
  const known = live && statusOf(live).stack;
  // Where the cluster cannot tell, the state does.
  const isTold = known !== undefined && owned !== undefined;
  const state = isTold ? undefined : unescapeReserved(await engine.exportStack(stack, signal));
  const recorded = recordedObjects(state);
  const key = objectKey(manifest.metadata);
  const uid = live?.metadata.uid ?? recordedOwner(state) ?? NO_UID;
  const parsed = await validateObject(kind, {
    ...manifest,
    metadata: { ...manifest.metadata, generation: live?.metadata.generation ?? 1, uid } as LiveObject["metadata"],
    ...(live?.status !== undefined && { status: live.status }),
  });
  if ("invalid" in parsed) return { action: "invalid", validatedBy: "schema", errors: [parsed.invalid], changes: [] };
  const verdict = await cluster.validate(manifest);
  if (verdict.type === "invalid") {
    return { action: "invalid", validatedBy: "server", errors: [verdict.message], changes: [] };
  }
  const identity = await cluster.identity();
  const context: ProgramContext = {
    ...(identity !== undefined && { cluster: identity }),
    owner: { uid, description: ownerDescription(kind, key) },
    owned: owned ?? recorded,
    recorded: new Set(known?.resources?.map(({ id }) => id) ?? recorded.map(objectId)),
    watched: (await cluster.observed(kind, key)) ?? [],
  };
  const preview = await engine.preview(stack, () => kind.program(parsed.object, context), {
    refresh,
    signal,
    sdkRuntime: kind.capabilities.sdkRuntime,
  });
  const resources = resourcesOf(preview, owned ?? []);
  const notes = pauseNotes(manifest);
  // Without a cluster, this applies to all objects, and the report has one note on it.
  if (verdict.type === "unknown" && cluster.unreachable === undefined)
    notes.push(`validated by schema and rules alone: ${verdict.why}`);
  return {
    ...outcomeOf(preview, preview.exists ? actionOf(resources) : "create"),
    validatedBy: verdict.type === "valid" ? "server" : "schema",
    resources,
    notes,
    changes: preview.changes,
  };
}

function outcomeOf({ failures }: PreviewResult, action: Action): Pick<ObjectPlan, "action" | "errors"> {
  return {
    action: failures.length > 0 ? "failed" : action,
    errors: failures.map(({ resource, message }) => (resource === undefined ? message : `${resource}: ${message}`)),
  };
}

/** An object's action is the most severe action of its resources. */
function actionOf(resources: readonly ResourcePlan[]): Action {
  if (resources.some(({ operation }) => operation === "replace")) return "replace";
  return resources.length > 0 ? "update" : "none";
}

/** What changes, by name: the engine's order differs from one preview to the next. @param owned the objects as they are */
function resourcesOf({ changes }: PreviewResult, owned: readonly LiveObject[]): ResourcePlan[] {
  const resources = changes.flatMap((change): ResourcePlan[] => {
    const { name, type, operation } = change;
    if (operation === "same") return [];
    const id = touchedObject(change);
    const live = owned.find((object) => objectId(object) === id);
    const fields = operation === "update" || operation === "replace" ? changedFields(change, live) : [];
    return [{ name, type: type.split(":").at(-1) ?? type, operation, fields }];
  });
  return resources.sort((a, b) => (a.name < b.name ? -1 : 1));
}

function pauseNotes(object: Pick<Manifest, "metadata">): string[] {
  const { paused, problem } = obeyedAnnotations(object);
  if (problem !== undefined) return [`paused: ${problem}`];
  return paused ? ["paused: no update until the annotation kindstack.dev/paused is removed"] : [];
}

/** The Kubernetes objects in a state, as far as a state knows them. */
function recordedObjects(state: StackState | undefined): LiveObject[] {
  return (state?.deployment.resources ?? []).flatMap(({ outputs = {} }) => {
    if (!isObjectOutputs(outputs)) return [];
    const { manifest, uid, resourceVersion } = outputs;
    return [{ ...manifest, metadata: { ...manifest.metadata, uid, resourceVersion } as LiveObject["metadata"] }];
  });
}

/** The UID of the object that a state was made for. */
function recordedOwner(state: StackState | undefined): string | undefined {
  const owners = (state?.deployment.resources ?? []).map(
    ({ outputs }) => outputs?.owner as { uid?: string } | undefined,
  );
  return owners.find((owner) => owner?.uid !== undefined)?.uid;
}

/** Notes removed and new objects that differ only in their names: the author may have meant a rename. */
export function noteRenamings(plans: readonly ObjectPlan[], candidates: readonly Candidate[]): void {
  for (const [index, old] of candidates.entries()) {
    const next = candidates.findIndex(
      (candidate, other) =>
        old.removed &&
        !candidate.removed &&
        plans[other]?.action === "create" &&
        candidate.kind === old.kind &&
        isDeepStrictEqual(candidate.manifest.spec, old.manifest.spec),
    );
    const [from, to] = [plans[index], plans[next]];
    if (from === undefined || to === undefined) continue;
    from.notes.push(`renamed to ${to.name}: its resources are not moved there`);
    to.notes.push(`renamed from ${from.name}: it gets new resources`);
  }
}
