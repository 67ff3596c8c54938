import type { LiveObject, Manifest } from "../../providers/kubernetes/client";
import type { Cluster } from "../../providers/kubernetes/cluster";
import type { Lookup } from "../../providers/kubernetes/types";
import type { Snapshot } from "../../providers/snapshot";
import { type AnyKind, ownerOf } from "../../stacks/contract/kind";
import { type KindObject, objectKey, stackName } from "../../stacks/contract/object";
import { readReferenced } from "../../stacks/contract/references";
import type { Referenced, RunContext } from "../../stacks/contract/run-context";
import type { PreviewResult, StackEngine, StackPreviewOptions } from "../automation/engine";
import type { Program } from "../automation/program";
import { type PlannedResource, type PlanOperation, plannedResources } from "./effects";
import { untrackedBeside } from "./untracked";

/** What an update or a destroy of one object's stack would do: the preview of an engine, and what that does to the world. */
export interface StackPlan extends PreviewResult {
  operation: PlanOperation;
  /** What the changes do to what is alive. */
  resources: readonly PlannedResource[];
  /** What is removed besides the stack's resources. Only told by a plan that binds. */
  untracked: readonly LiveObject[];
}

export interface PlanRequest {
  kind: AnyKind;
  /** Whose stack it is; an object that is not there yet need not have a UID. */
  object: Pick<Manifest, "metadata">;
  view: View;
  engine: Pick<StackEngine, "preview" | "previewDestroy">;
  /** What the engine is told of the object, see {@link StackPreviewOptions}. */
  stackObject?: StackPreviewOptions["object"];
  /** Whether an operation may be bound to the plan: it tells all that the operation would do. */
  binds: boolean;
  signal: AbortSignal | undefined;
}

/** Plans an update. @param refresh whether drift is corrected; an update that is bound always does that */
export function planUpdate(request: PlanRequest & { program: Program; refresh: boolean }): Promise<StackPlan> {
  const { kind, engine, program, binds, refresh } = request;
  const { sdkRuntime } = kind.capabilities;
  return planOf(request, "update", (stack, options) =>
    engine.preview(stack, program, { ...options, refresh: refresh || binds, sdkRuntime }),
  );
}

/** Plans a destroy. One that is bound trusts the state. */
export function planDestroy(request: PlanRequest & { release: boolean; refresh: boolean }): Promise<StackPlan> {
  const { engine, binds, release, refresh } = request;
  return planOf(request, release ? "release" : "delete", (stack, options) =>
    engine.previewDestroy(stack, { ...options, refresh: refresh && !binds }),
  );
}

async function planOf(
  { kind, object, view, binds, signal, stackObject }: PlanRequest,
  operation: PlanOperation,
  previewOf: (stack: string, options: StackPreviewOptions) => Promise<PreviewResult>,
): Promise<StackPlan> {
  const snapshot: Snapshot = new Map();
  const options = { signal, plans: binds, object: stackObject, snapshot };
  const preview = await previewOf(stackName(kind, objectKey(object.metadata)), options);
  const { changes, failures, observed } = preview;
  const look: View["look"] = (manifest) => view.look(manifest, snapshot);
  const changing = { kind, uid: object.metadata.uid, operation };
  const resources = await plannedResources(changes, look, changing, observed);
  const isWhole = binds && failures.length === 0 && operation !== "release";
  const others = isWhole && operation === "delete" ? await view.deletedWith() : [];
  const untracked = isWhole ? untrackedBeside(await view.marked(), changes, others) : [];
  return { ...preview, operation, resources, untracked };
}

/** Whether a plan changes anything. */
export function changesAnything({ changes, untracked }: StackPlan): boolean {
  return untracked.length > 0 || changes.some(({ operation }) => operation !== "same");
}

/** @throws the error of what could not be looked up, for those who decide nothing on an unknown */
export function refuseUnknown({ resources }: StackPlan): void {
  const missing = resources.find(({ lookupError }) => lookupError !== undefined);
  if (missing !== undefined) throw missing.lookupError;
}

/**
 * The world around one object, as plans of it and its program see it. How it is read, and with which rights, is up to who plans; and
 * so is what cannot be told: a method throws, or notes that and answers with what is known.
 */
export interface View {
  /** Looks for the object that a manifest names. @param snapshot what a preview has read already; a view that keeps what it finds ignores it */
  look(manifest: Manifest, snapshot?: Snapshot): Promise<Lookup>;
  /** What tells the cluster from others; `undefined` without the right to read that. */
  cluster(): Promise<Cluster | undefined>;
  /** The object's live objects of the types in {@link LiveState.reads}, as its program must see them. */
  owned(): Promise<LiveObject[]>;
  /** What its kind watches for the object, as its program must see it. */
  watched(): Promise<LiveObject[]>;
  /** All live objects that carry the object's mark. */
  marked(): Promise<readonly LiveObject[]>;
  /** What others made, and is deleted with the object. */
  deletedWith(): Promise<readonly LiveObject[]>;
}

/** What a program depends on besides its object. */
export interface ProgramInputs {
  cluster: Cluster | undefined;
  /** Of the types in {@link LiveState.reads}. */
  owned: LiveObject[];
  watched: LiveObject[];
  referenced: Referenced;
}

/** Reads what an object's program depends on. @throws Error when what the object refers to cannot be told */
export async function readInputs(view: View, kind: AnyKind, object: KindObject): Promise<ProgramInputs> {
  const [owned, watched, referenced, cluster] = await Promise.all([
    view.owned(),
    view.watched(),
    readReferenced({ find: (target) => view.look(target as Manifest) }, kind, object),
    view.cluster(),
  ]);
  return { cluster, owned, watched, referenced };
}

/** What the program of an object is told of it. @param recorded the ids of what the last update recorded in the stack */
export function programContext(
  kind: AnyKind,
  object: Pick<LiveObject, "metadata">,
  { cluster, ...inputs }: ProgramInputs,
  recorded: Iterable<string>,
): RunContext {
  return { owner: ownerOf(kind, object), recorded: new Set(recorded), ...inputs, ...(cluster && { cluster }) };
}
