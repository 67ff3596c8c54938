import type { LiveObject, Manifest } from "../../providers/kubernetes/client";
import type { Snapshot } from "../../providers/snapshot";
import type { AnyKind } from "../../stacks/contract/kind";
import { objectKey, stackName } from "../../stacks/contract/object";
import type { PreviewOptions, PreviewResult, StackEngine } from "../automation/engine";
import type { Program } from "../automation/program";
import { type PlannedResource, type PlanOperation, plannedResources } from "./effects";
import { untrackedBeside } from "./untracked";
import type { View } from "./view";

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
  /** What the engine is told of the object, see {@link PreviewOptions}. */
  stackObject?: PreviewOptions["object"];
  /** Whether an operation may be bound to the plan: it tells all that the operation would do. */
  binds: boolean;
  signal: AbortSignal | undefined;
}

/** Plans an update. @param refresh whether drift is corrected; an update that is bound always does that */
export function planUpdate(request: PlanRequest & { program: Program; refresh: boolean }): Promise<StackPlan> {
  const { kind, engine, program, binds, refresh } = request;
  const { sdkRuntime } = kind.capabilities;
  const options = { ...optionsOf(request), refresh: refresh || binds, sdkRuntime };
  return planOf(request, "update", (stack, snapshot) => engine.preview(stack, program, { ...options, snapshot }));
}

/**
 * Plans a destroy. One that is bound trusts the state.
 *
 * @param release whether the resources stay
 */
export function planDestroy(request: PlanRequest & { release: boolean; refresh: boolean }): Promise<StackPlan> {
  const { engine, binds, release, refresh } = request;
  const options = { ...optionsOf(request), refresh: refresh && !binds };
  const operation = release ? "release" : "delete";
  return planOf(request, operation, (stack, snapshot) => engine.previewDestroy(stack, { ...options, snapshot }));
}

function optionsOf({ stackObject: object, binds, signal }: PlanRequest): PreviewOptions {
  return { signal, plans: binds, object };
}

async function planOf(
  { kind, object, view, binds }: PlanRequest,
  operation: PlanOperation,
  previewOf: (stack: string, snapshot: Snapshot) => Promise<PreviewResult>,
): Promise<StackPlan> {
  const snapshot: Snapshot = new Map();
  const preview = await previewOf(stackName(kind, objectKey(object.metadata)), snapshot);
  const { changes, failures } = preview;
  const look: View["look"] = (manifest) => view.look(manifest, snapshot);
  const resources = await plannedResources(changes, { look }, { kind, uid: object.metadata.uid, operation });
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
