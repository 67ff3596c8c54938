import type { KeyObject } from "node:crypto";
import { errorMessageOf } from "../../providers/errors";
import type { LiveObject, Manifest } from "../../providers/kubernetes/client";
import type { Lookup } from "../../providers/kubernetes/types";
import { unescapeReserved } from "../../providers/literal";
import { parseDeclared, parseLive } from "../../stacks/contract/declared";
import { programDigest } from "../../stacks/contract/digest";
import { type AnyKind, parseServed, statusOf } from "../../stacks/contract/kind";
import { objectId, objectKey, stackName } from "../../stacks/contract/object";
import { referenceRecords } from "../../stacks/contract/references";
import type { DeclaredManifest } from "../../stacks/contract/select-manifests";
import type { StackEngine } from "../automation/engine";
import { programOf } from "../automation/program";
import { recordedObjects, recordedOwner } from "../automation/stack-state";
import type { Declarations, Declared } from "../fleet/artefact";
import { type PlanBasis, type PlanDigests, planDigests } from "../plan/digest";
import type { PlannedResource } from "../plan/effects";
import { changesAnything, planDestroy, planUpdate, programContext, readInputs, type StackPlan } from "../plan/plan";
import { UNCHECKED } from "../plan/resource-plan";
import { appliedMetadata } from "./applied-metadata";
import { type CallerView, type ConfiguredMode, callerView, readSettings, settingsNotes } from "./caller-view";
import type { ClusterView } from "./cluster-view";
import { type Action, actionOf, type ObjectPlan } from "./report";

/** An object whose stack is to be previewed. */
export interface Candidate extends Pick<DeclaredManifest, "kind" | "manifest"> {
  file?: string;
  /** The object as it was listed, which the API server has taken. */
  live?: LiveObject;
  /** Whether the object would be deleted. */
  removed: boolean;
  /** Why that, or what would happen to it, cannot be told. */
  doubt?: string;
  /** Why nothing would happen to it. */
  refused?: string;
  /** What its program has declared elsewhere; it does not run here. */
  declared?: Pick<Declared, "uid" | "generation" | "outcome"> & Pick<Declarations, "providers">;
}

/** An object of the cluster. */
export function liveCandidate(kind: AnyKind, live: LiveObject): Candidate {
  return { kind, manifest: live, live, removed: live.metadata.deletionTimestamp !== undefined };
}

export interface PlanOptions {
  engine: Pick<StackEngine, "preview" | "previewDestroy" | "exportStack">;
  cluster: ClusterView;
  /** Compare with the live resources, so that the correction of drift shows. */
  refresh: boolean;
  /** The key of the digests that plans have then, for approvals. */
  proposeWith?: (() => Promise<KeyObject>) | undefined;
  configuredMode?: ConfiguredMode | undefined;
  signal?: AbortSignal | undefined;
}

/** What is found out about a plan, and the changes behind it. */
export type FoundPlan = Omit<Partial<ObjectPlan>, "resources"> &
  Pick<StackPlan, "changes" | "resources"> & {
    notes?: string[];
    claims?: readonly string[];
    held?: readonly string[];
    /** What could not be looked up. */
    unknown: readonly string[];
  };

export async function previewRemoval(
  options: PlanOptions,
  { kind, manifest }: Candidate,
  lookup: Lookup,
): Promise<FoundPlan> {
  const { engine, cluster, refresh, proposeWith, signal } = options;
  const live = lookup.outcome === "found" ? lookup.object : undefined;
  const object = live ?? manifest;
  const { mode, releases } = await readSettings(cluster, options.configuredMode, kind, object);
  const release = releases || mode === "Observe";
  const owned = live && proposeWith && (await cluster.owned(kind, live.metadata));
  const view = callerView(cluster, { kind, key: objectKey(object.metadata), live, owned, recorded: [] });
  const request = { kind, object, view, engine, signal, refresh, release, binds: proposeWith !== undefined };
  const plan = await planDestroy(request);
  const isReleased = plan.resources.length > 0 && plan.resources.every(({ shown }) => shown.operation === "release");
  const action = !plan.exists ? "none" : release ? "orphan" : isReleased ? "release" : "delete";
  const found = await foundPlan(
    { ...options, proposeWith: owned && proposeWith },
    { kind, object, lookup, view },
    plan,
    action,
  );
  if (!plan.exists && found.unknown.length === 0) found.notes?.push("it has no stack, so it has no resources");
  return found;
}

/** What is found out where nothing is planned. */
export const NOTHING = { changes: [], resources: [], unknown: [] };

/** The owner of an object that does not exist yet. */
const NO_UID = "00000000-0000-0000-0000-000000000000";

export async function previewUpdate(
  options: PlanOptions,
  { kind, manifest, live: listed }: Candidate,
  lookup: Lookup,
): Promise<FoundPlan> {
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
  const parsed = await validateObject(kind, listed !== undefined, {
    ...manifest,
    metadata: { ...metadata, generation: live?.metadata.generation ?? 1, uid } as LiveObject["metadata"],
    ...(live?.status !== undefined && { status: live.status }),
  }).catch((error: unknown) => ({ invalid: errorMessageOf(error) }));
  const invalid = { ...NOTHING, action: "invalid" as const };
  if ("invalid" in parsed) return { ...invalid, validatedBy: "schema", errors: [parsed.invalid] };
  const { object, refused } = parsed;
  const verdict = listed === undefined ? await cluster.validate(manifest) : ({ type: "valid" } as const);
  if (verdict.type === "invalid") return { ...invalid, validatedBy: "server", errors: [verdict.message] };
  const view = callerView(cluster, { kind, key, live, owned, recorded });
  const inputs = await readInputs(view, kind, object).catch((error: unknown) => couldNot("what it refers to", error));
  // Without that, the program would remove what depends on it.
  if (typeof inputs === "string") return { ...NOTHING, unknown: [inputs] };
  const ids = stacked?.resources?.map(({ id }) => id) ?? recorded.map(objectId);
  const program = programOf(kind, object, programContext(kind, object, inputs, ids));
  const request = { kind, object, view, engine, signal, program, refresh, binds: proposeWith !== undefined };
  const plan = await planUpdate(request);
  const action = plan.exists ? actionOf(plan.resources.map(({ shown }) => shown)) : "create";
  const references = await referenceRecords(kind, object, inputs.referenced);
  const found = await foundPlan(options, { kind, object, lookup, view, references }, plan, action);
  return {
    ...withRefused(found, refused),
    validatedBy: verdict.type === "valid" ? "server" : "schema",
    ...(verdict.type === "unknown" && cluster.unreachable === undefined && { notValidated: verdict.why }),
    claims: (await kind.capabilities.claims?.of(object, inputs.watched)) ?? [],
    held: live ? await claimsOf(kind, live, inputs.watched) : [],
  };
}

/** Whose plan it is, and what is known of that. */
interface Subject extends Pick<PlanBasis, "kind" | "object">, Partial<Pick<PlanBasis, "references">> {
  lookup: Lookup;
  view: CallerView;
}

export async function foundPlan(
  { cluster, proposeWith, configuredMode }: PlanOptions,
  { lookup, view, ...subject }: Subject,
  plan: StackPlan,
  action: Action,
): Promise<FoundPlan> {
  const { exists, failures, changes, resources } = plan;
  const settings = await readSettings(cluster, configuredMode, subject.kind, subject.object);
  // A program that fails reaches no state.
  const isLost =
    !exists && failures.length === 0 && lookup.outcome === "found" && statusOf(lookup.object).stack !== undefined;
  const unknown = [
    ...(lookup.outcome === "unknown" ? [couldNot("the object", lookup.error)] : []),
    ...view.unknown(),
    ...unknownResources(resources, cluster),
    ...(isLost ? ["its status names a stack that is not in the state: is PULUMI_BACKEND_URL right?"] : []),
  ];
  const isProposed = unknown.length === 0 && failures.length === 0 && changesAnything(plan);
  return {
    action: failures.length > 0 ? "failed" : settings.paused ? "paused" : action,
    errors: failures.map(({ resource, message }) => (resource === undefined ? message : `${resource}: ${message}`)),
    notes: [...settingsNotes(settings), ...lossNotes(resources)],
    ...(proposeWith && isProposed && digestsOf(await proposeWith(), subject, plan)),
    ...{ changes, resources, unknown },
  };
}

/** A plan of an object that is updated, and whose next change the API server would refuse or cut. */
export function withRefused<T extends Pick<FoundPlan, "action" | "errors">>(found: T, refused: readonly string[]): T {
  if (refused.length === 0) return found;
  const action = found.action === "failed" ? "failed" : "invalid";
  return { ...found, action, errors: [...refused, ...(found.errors ?? [])] };
}

function unknownResources(resources: readonly PlannedResource[], { unreachable }: ClusterView): string[] {
  if (unreachable !== undefined) return []; // the object is unknown for the same reason
  return resources.flatMap(({ shown, lookupError }) =>
    lookupError === undefined ? [] : [couldNot(shown.name, lookupError)],
  );
}

export function couldNot(what: string, error: unknown): string {
  return `${what} could not be looked up: ${errorMessageOf(error)}`;
}

/** By kind: to make a digest reads all files of the program, which is too slow for each of many objects. */
const programDigests = new WeakMap<AnyKind, string>();

function digestOfProgram(kind: AnyKind): string {
  const digest = programDigests.get(kind) ?? programDigest(kind);
  programDigests.set(kind, digest);
  return digest;
}

/** The digests of the plan that the operator makes in a cluster that is as it is now. */
function digestsOf(
  key: KeyObject,
  { references = [], ...subject }: Omit<Subject, "lookup" | "view">,
  plan: StackPlan,
): Pick<PlanDigests, "digest" | "group"> {
  const basis = { ...plan, ...subject, references, programDigest: digestOfProgram(subject.kind) };
  const { digest, group } = planDigests(key, basis);
  return { digest, group };
}

/** What an object of the cluster holds: what it claims, once it was updated. */
export async function claimsOf(
  kind: AnyKind,
  live: LiveObject,
  watched: readonly LiveObject[] = [],
): Promise<string[]> {
  const { claims } = kind.capabilities;
  if (claims === undefined || statusOf(live).stack === undefined) return [];
  try {
    return await claims.of(await parseServed(kind, live), watched);
  } catch {
    return []; // one that its kind does not take any more holds nothing
  }
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

/** Names as the API server takes them for objects of any kind. */
const NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const MAX_NAME = 253;

/**
 * Validates an object by the kind's schema and rules, as far as that goes without the API server, whose admission is not
 * asked.
 *
 * @param isLive whether it is in the cluster, where it is not validated again
 * @returns the object with its schema's defaults, and why its next change would be refused
 * @throws Error why it may not be previewed
 */
async function validateObject(kind: AnyKind, isLive: boolean, manifest: LiveObject): ReturnType<typeof parseLive> {
  const { name } = manifest.metadata;
  if (name.length > MAX_NAME || !NAME.test(name)) throw new Error(`metadata.name: "${name}" is no name of an object`);
  return isLive ? parseLive(kind, manifest) : { object: await parseDeclared(kind, manifest), refused: [] };
}
