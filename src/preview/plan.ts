import { isDeepStrictEqual } from "node:util";
import { errorMessageOf } from "../../providers/errors";
import type { LiveObject, Manifest } from "../../providers/kubernetes/client";
import { isObjectOutputs } from "../../providers/kubernetes/object";
import { unescapeReserved } from "../../providers/literal";
import { apiVersionsOf, convertObject } from "../../stacks/contract/convert";
import { type AnyKind, ownerDescription, type ProgramContext, statusOf } from "../../stacks/contract/kind";
import {
  DELETION_POLICY_ANNOTATION,
  type KindObject,
  objectId,
  objectKey,
  PAUSED_ANNOTATION,
  stackName,
} from "../../stacks/contract/object";
import { stackOf } from "../../stacks/contract/shared-stack";
import type { PlannedChange } from "../automation/planned-changes";
import type { StackPreview } from "../automation/stack-preview";
import type { StackReader, StackState } from "../automation/stack-reader";
import type { ClusterView, Sighting } from "./cluster-view";
import { type ConflictSources, findConflicts, type Planned, touchedObjects } from "./conflicts";
import { changedFields } from "./fields";
import type { Action, ObjectPlan, ResourcePlan } from "./report";
import { parseManifest } from "./validate";

/** An object whose stack is to be previewed. */
export interface Candidate {
  kind: AnyKind;
  manifest: Manifest & { metadata: { name: string } };
  file?: string;
  /** Whether the object is to go. */
  removed: boolean;
}

export interface PlanOptions {
  reader: Pick<StackReader, "preview" | "previewDestroy" | "state">;
  cluster: Pick<ClusterView, "uid" | "find" | "look" | "owned" | "observed" | "validate" | "unreachable">;
  /** Compare with the real world, so that the repair of drift shows. */
  refresh: boolean;
  signal?: AbortSignal | undefined;
}

/** The owner of an object that does not exist yet. */
const NO_UID = "00000000-0000-0000-0000-000000000000";

/** Says what an update would do to the stack of one object, and what of that concerns other objects. */
export async function planObject(options: PlanOptions & ConflictSources, candidate: Candidate): Promise<Planned> {
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
    stack: stackOf(kind, key, undefined),
    action: "none",
    resources: [],
    errors: [],
    notes: [],
  };
  try {
    const sighting = await options.cluster.find(kind, name, namespace);
    const live = sighting.seen ? sighting.object : undefined;
    const stacked = { ...plan, stack: stackOf(kind, key, live) };
    const planStack = candidate.removed ? planRemoval : planUpdate;
    const { changes, ...planned } = await planStack(options, candidate, stacked, sighting);
    const found = await findConflicts(changes, options);
    return { plan: { ...stacked, ...planned }, owner, touched: touchedObjects(changes), ...found };
  } catch (error) {
    options.signal?.throwIfAborted();
    const failed: ObjectPlan = { ...plan, action: "failed", errors: [errorMessageOf(error)] };
    return { plan: failed, owner, touched: new Map(), conflicts: [], unseen: [] };
  }
}

/** What is found out about a plan, and the changes behind it. */
type StackPlan = Partial<ObjectPlan> & { changes: readonly PlannedChange[] };

async function planRemoval(
  { reader, refresh, signal }: PlanOptions,
  { kind, manifest }: Candidate,
  plan: ObjectPlan,
  sighting: Sighting,
): Promise<StackPlan> {
  const annotations = ((sighting.seen && sighting.object) || manifest).metadata.annotations;
  const released = annotations?.[DELETION_POLICY_ANNOTATION] === "Orphan";
  const preview = await reader.previewDestroy(plan.stack, { refresh, signal, ...memberOf(kind, plan.stack, manifest) });
  const notes = pauseNotes(annotations);
  if (!preview.exists) notes.push("it has no stack, so it has no resources");
  const resources = inOrder(preview.changes).map((change) => ({
    ...describeChange(change),
    ...(released && { operation: "release" as const }),
  }));
  const action = !preview.exists ? "none" : released ? "release" : "delete";
  return { ...outcomeOf(preview, action), resources, notes, changes: preview.changes };
}

async function planUpdate(
  { reader, cluster, refresh, signal }: PlanOptions,
  { kind, manifest: written }: Candidate,
  plan: ObjectPlan,
  sighting: Sighting,
): Promise<StackPlan> {
  const isServed = apiVersionsOf(kind).includes(written.apiVersion); // else it is refused below
  const manifest = isServed ? convertObject(kind, written) : written;
  const live = sighting.seen ? sighting.object : undefined;
  const owned = live && (await cluster.owned(kind, live.metadata));
  const known = live === undefined ? undefined : statusOf(live).stack;
  // Where the cluster cannot tell, the state does.
  const isTold = known !== undefined && owned !== undefined;
  const state = isTold ? undefined : unescapeReserved(await reader.state(plan.stack, signal));
  const recorded = recordedObjects(state);
  const key = objectKey(manifest.metadata);
  const uid = live?.metadata.uid ?? recordedOwner(state, key) ?? NO_UID;
  const identity = {
    metadata: { ...manifest.metadata, generation: live?.metadata.generation ?? 1, uid } as LiveObject["metadata"],
    ...(live?.status !== undefined && { status: live.status }),
  };
  const parsed = await parseManifest(kind, manifest, identity);
  if ("invalid" in parsed) return { action: "invalid", validatedBy: "schema", errors: [parsed.invalid], changes: [] };
  const verdict = await cluster.validate(manifest);
  if (verdict.type === "invalid") {
    return { action: "invalid", validatedBy: "server", errors: [verdict.message], changes: [] };
  }
  const clusterUid = await cluster.uid();
  const context: ProgramContext = {
    ...(clusterUid !== undefined && { cluster: clusterUid }),
    owner: { uid, description: ownerDescription(kind, key) },
    owned: owned ?? recorded,
    recorded: new Set(known?.resources?.map(({ id }) => id) ?? recorded.map((object) => objectId(object))),
    watched: (await cluster.observed(kind, key)) ?? [],
  };
  const object: KindObject = parsed.object;
  const preview = await reader.preview(plan.stack, () => kind.program(object, context), {
    refresh,
    signal,
    sdkRuntime: kind.capabilities.sdkRuntime,
    ...memberOf(kind, plan.stack, manifest),
  });
  const changes = inOrder(preview.changes).filter(({ operation }) => operation !== "same");
  const resources = changes.map((change) => describeChange(change, findLive(owned ?? [], change)));
  const notes = pauseNotes(manifest.metadata.annotations);
  // Without a cluster that is so of all objects, and said once.
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

function outcomeOf({ failures }: StackPreview, action: Action): Pick<ObjectPlan, "action" | "errors"> {
  return {
    action: failures.length > 0 ? "failed" : action,
    errors: failures.map(({ resource, message }) => (resource === undefined ? message : `${resource}: ${message}`)),
  };
}

/** The most that happens to any of its resources happens to the object. */
function actionOf(resources: readonly ResourcePlan[]): Action {
  if (resources.some(({ operation }) => operation === "replace")) return "replace";
  return resources.length > 0 ? "update" : "none";
}

/** The engine's order is that in which it got round to them; two previews of the same should read the same. */
function inOrder(changes: readonly PlannedChange[]): PlannedChange[] {
  return [...changes].sort((a, b) => (a.name < b.name ? -1 : 1));
}

function describeChange(change: PlannedChange, live?: LiveObject): ResourcePlan {
  const operation = change.operation === "same" ? "update" : change.operation;
  return {
    name: change.name,
    type: change.type.split(":").at(-1) ?? change.type,
    operation,
    fields: operation === "update" || operation === "replace" ? changedFields(change, live) : [],
  };
}

function findLive(owned: readonly LiveObject[], { inputs }: PlannedChange): LiveObject | undefined {
  const manifest = inputs?.manifest as Manifest | undefined;
  if (manifest === undefined) return undefined;
  const id = objectId(manifest);
  return owned.find((object) => objectId(object) === id);
}

function pauseNotes(annotations: Record<string, string> | undefined): string[] {
  return annotations?.[PAUSED_ANNOTATION] === "true"
    ? ["paused: no update until the annotation kindstack.dev/paused is removed"]
    : [];
}

/** The Kubernetes objects in a state, as far as a state knows them. */
function recordedObjects(state: StackState | undefined): LiveObject[] {
  return (state?.deployment.resources ?? []).flatMap(({ outputs = {} }) => {
    if (!isObjectOutputs(outputs)) return [];
    const { manifest, uid, resourceVersion } = outputs;
    return [{ ...manifest, metadata: { ...manifest.metadata, uid, resourceVersion } as LiveObject["metadata"] }];
  });
}

/** An object that is one of several in its stack, for the reader. */
function memberOf(kind: AnyKind, stack: string, { metadata }: Manifest): { member?: { kind: AnyKind; key: string } } {
  const key = objectKey(metadata);
  return stack === stackName(kind, key) ? {} : { member: { kind, key } };
}

/** The UID of the object that a state, or its part of one, was made for. */
function recordedOwner(state: StackState | undefined, key: string): string | undefined {
  for (const { outputs } of state?.deployment.resources ?? []) {
    const owner = outputs?.owner as { uid?: string; description?: string } | undefined;
    if (owner?.uid !== undefined && (owner.description?.endsWith(`/${key}`) ?? true)) return owner.uid;
  }
  return undefined;
}

/** A removed object and a new one that differ only in their names: the name was changed where a rename was meant. */
export function noteRenamings(plans: readonly ObjectPlan[], candidates: readonly Candidate[]): ObjectPlan[] {
  const notes = new Map<ObjectPlan, string>();
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
    notes.set(from, `renamed to ${to.name}: its resources are not moved there`);
    notes.set(to, `renamed from ${from.name}: it gets new resources`);
  }
  return plans.map((plan) => {
    const note = notes.get(plan);
    return note === undefined ? plan : { ...plan, notes: [...plan.notes, note] };
  });
}
