import type { OpMap, UpdateSummary } from "@pulumi/pulumi/automation/stack";
import type { Observations } from "../../providers/observation";
import type { WorkContext } from "../../providers/provider";
import type { DeclaredResource } from "../../providers/registration";
import type { Snapshot } from "../../providers/snapshot";
import type { EngineReport, StackResource, UpdateFailure } from "./event-log";
import type { BackendOwner } from "./owner-file";
import type { BindingPlan, PlannedChange, ResourceChange } from "./planned-changes";
import type { Program } from "./program";
import type { StackState } from "./stack-state";

export type { OpMap } from "@pulumi/pulumi/automation/stack";

/**
 * Runs stacks, with the names and types of `@pulumi/pulumi/automation`. Where the Automation API throws an error with the
 * CLI's words, a result here has the failures of an operation, each with a class that a queue can act on.
 *
 * All methods throw RetryableError `NoEngine`, `Unreadable` (the backend does not answer, or a state cannot be read),
 * TerminalError `Misconfigured` (the engine is of another version), and the errors of the work's fence (`context`). Also:
 *
 * - writes of a stack: RetryableError `Locked`, as they exclude each other;
 * - calls with an owner: RetryableError `BackendForeign`, before anything is read or written;
 * - previews: RetryableError `Interrupted`; what has to do with plans: TerminalError `PlansUnsupported` of the Automation API;
 * - all others: the reason of their signal.
 */
export interface StackEngine {
  /** Creates or updates what `program` registers; makes the stack when there is none. */
  up(stack: string, program: Program, options?: UpOptions): Promise<UpResult>;
  /** What `up` with this program would do; a stack that does not exist counts as empty. Writes nothing, takes no lock. */
  preview(stack: string, program: Program, options?: StackPreviewOptions): Promise<PreviewResult>;
  /**
   * Deletes everything in a stack, then the stack with its history; until {@link forgetDestroyed}, the backend tells of it to
   * the object. A stack that does not exist is a success, unless its object has had it.
   */
  destroy(stack: string, options?: DestroyOptions): Promise<UpResult>;
  /** What `destroy` would do: nothing when there is no such stack. */
  previewDestroy(stack: string, options?: StackPreviewOptions): Promise<PreviewResult>;
  /** The updates, newest first; `undefined` when there is no such stack. */
  history(stack: string, signal?: AbortSignal): Promise<HistoryEntry[] | undefined>;
  /** The state, secrets encrypted; `undefined` when there is no such stack. */
  exportStack(stack: string, signal?: AbortSignal): Promise<StackState | undefined>;
  /** Removes what tells that stacks were destroyed: the finalizers of their objects are removed. */
  forgetDestroyed(stacks: readonly string[]): Promise<void>;
  listStacks(signal?: AbortSignal): Promise<{ name: string }[]>;
  /** The recorded owner of the backend; `undefined` without a record. */
  backendOwner(signal?: AbortSignal): Promise<BackendOwner | undefined>;
  /**
   * Records the owner of the backend, where no owner is recorded, or in place of the owner with the id `replaces`.
   *
   * @returns the recorded owner: another one, if that was recorded first
   */
  claimBackend(owner: BackendOwner, replaces?: string, signal?: AbortSignal): Promise<BackendOwner>;
  /** Operations may run for so long from now, and then end unless this is called again; without any call, for ever. */
  allow(ms: number): void;
  close(): Promise<void>;
}

export interface WorkOptions {
  /** The id of the {@link BackendOwner} that the backend must have. */
  owner?: string | undefined;
  /** Tells providers of the work. Without its right to write, nothing is begun that writes, and what runs is ended. */
  context?: WorkContext | undefined;
  signal?: AbortSignal | undefined;
}

export interface StackObject {
  uid: string;
  /**
   * Whether the object has had the stack. Where that is not there, and was not destroyed for this object, the state is lost: the
   * operation does nothing, and fails with `StateMissing`.
   */
  mustExist: boolean;
}

interface OperationOptions extends WorkOptions {
  object?: StackObject | undefined;
  /**
   * Stays in the stack's history, such as who approved the update. The Go engine makes no entry of an update without one that
   * changes nothing.
   */
  message?: string | undefined;
  /**
   * Save the state at the end, not after each step. A checkpoint is the whole state: with many steps, or in a large stack,
   * that is most of an update's time. What a killed update made is then in no state; see {@link adoptsAfterCrash}.
   */
  savesOnce?: boolean | undefined;
}

export interface StackPreviewOptions extends WorkOptions {
  object?: StackObject | undefined;
  /** Compare the state with the real world first, so that drift shows, or is repaired. */
  refresh?: boolean | undefined;
  /** Run the program in the SDK's runtime ({@link Capabilities.sdkRuntime}). */
  sdkRuntime?: boolean | undefined;
  /** Answer a {@link PreviewResult.plan}, and what was {@link PreviewResult.observed}. */
  plans?: boolean | undefined;
  /** What the caller has read, and will. */
  snapshot?: Snapshot | undefined;
}

/** An operation with a plan ends with the failure `PlanOutdated` before a step that is not in the plan. */
interface HeldOptions {
  plan?: BindingPlan | undefined;
  /** What the same preview has observed: a resource is left as it is where the world has something else by now. */
  observed?: Observations | undefined;
}

/**
 * A plan of {@link StackEngine.preview} holds an update to inputs and operations. Providers with `observe` also hold the update
 * to the observed live values; providers of Pulumi's plugins cannot.
 */
export interface UpOptions extends OperationOptions, Omit<StackPreviewOptions, "plans" | "snapshot">, HeldOptions {
  /** Ends the update after the steps that run: their calls are told, and none is cut off. */
  stop?: AbortSignal | undefined;
  /** Gives the outputs of the stack itself, of the resources as a successful update has left them. */
  outputs?: ((resources: readonly StackResource[]) => Promise<object | undefined>) | undefined;
  /** Told what the program declares, secrets included, where that is known before the engine runs. */
  onDeclared?: ((resources: readonly DeclaredResource[]) => void) | undefined;
}

/** With a plan of {@link StackEngine.previewDestroy}, the state has to have the same resources as it had then. */
export interface DestroyOptions extends OperationOptions, HeldOptions {
  /** Deletions release what was made instead of deleting it. */
  release?: boolean | undefined;
}

export interface UpResult extends Pick<EngineReport, "resources" | "deleted" | "gone"> {
  summary: OperationSummary;
  /** Whether the stack existed, or the backend has the proof of its destruction. */
  found: boolean;
  /** It was told to end before it did: neither a success nor a failure. */
  interrupted: boolean;
  /** Whether something may have been made that the state does not have: a creation was cut off, or failed and does not tell. */
  unrecorded: boolean;
  /** Why it did not succeed; empty when it did. */
  failures: UpdateFailure[];
  /** Whether all the rest was done: it succeeded, or what failed was one resource's operation or another's and no more. */
  restDone: boolean;
}

export interface OperationSummary extends Pick<UpdateSummary, "startTime" | "endTime"> {
  kind: "update" | "destroy";
  result: "succeeded" | "failed";
  /** How many resources each operation touched, without those that stayed the same. */
  resourceChanges: OpMap;
}

export interface PreviewResult {
  exists: boolean;
  changes: PlannedChange[];
  /** Where it was asked for, and the preview did not fail; also absent for the destroy of no stack. */
  plan?: BindingPlan;
  /** With the plan: what its writes would overwrite. */
  observed?: Observations;
  /** Why it could not be told; empty when it could. */
  failures: UpdateFailure[];
}

/** An update as a stack's history has it. */
export interface HistoryEntry
  extends Pick<UpdateSummary, "version" | "kind" | "message" | "startTime" | "endTime" | "resourceChanges"> {
  /** `waiting`: the update did all but what waits for something else to end. */
  result: UpdateSummary["result"] | "waiting";
  /** Which resources it changed; absent for an update by the CLI where the history does not tell. */
  changes?: ResourceChange[];
  /** Those whose change failed, or waits for something else to end. */
  unfinished?: ResourceChange[];
}
