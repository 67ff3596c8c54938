import type { LiveObject } from "../../providers/kubernetes/client";
import type { NewCondition } from "../../stacks/contract/condition";
import type { StackRecord } from "../../stacks/contract/object";
import type { UpResult } from "../automation/engine";
import type { UpdateFailure } from "../automation/event-log";
import type { ResourcePlan } from "../plan/resource-plan";
import type { DestroyAction, UpdateAction } from "./action";
import type { Pass, Proposed } from "./gate";
import type { AppliedResult, ClaimedProgram } from "./stack";

/** What came of an action. */
export type Outcome =
  /** Something has changed since the facts were observed: the object is reconciled again. */
  | { type: "stale" }
  /** The same, and the engine had done a part of it. */
  | { type: "interrupted"; object: LiveObject; result: UpResult }
  /** Nothing is to be done now: an update turned out not to be needed, or a rollout has not reached the object. */
  | { type: "left" }
  /** The code of the program is new, and what it declares is what was applied. */
  | { type: "sameDeclarations"; object: LiveObject; former: StackRecord }
  /** What comes before all else is written: the object is reconciled again. */
  | { type: "prepared" }
  /** Only the status may need a correction. */
  | { type: "rests"; conditions: readonly NewCondition[]; requeueAfterMs: number }
  /** It waits for something else to end: these failures. */
  | { type: "waits"; failures: UpdateFailure[]; requeueAfterMs: number }
  /** What an update would do, or why that cannot be told. */
  | { type: "previewed"; resources: ResourcePlan[]; failures: UpdateFailure[] }
  | Proposed
  | Updated
  | UpdateFailed
  | Destroyed
  | DestroyFailed;

interface Applied {
  /** The object as it was last written. */
  object: LiveObject;
  result: UpResult;
  pass: Pass;
}

/** Also of an update before a destroy: what that was to take over is in the state. */
export interface Updated extends Applied {
  type: "updated";
  action: UpdateAction;
  result: AppliedResult;
  program: ClaimedProgram;
}

export interface UpdateFailed {
  type: "updateFailed";
  action: UpdateAction;
  object: LiveObject;
  failures: UpdateFailure[];
  /** The engine's result and the program, where it came to that. */
  partial: { result: UpResult; program: ClaimedProgram } | undefined;
}

export interface Destroyed extends Applied {
  type: "destroyed";
  action: DestroyAction;
  /** The resources that all attempts have deleted, in words. */
  deleted: readonly string[];
}

export interface DestroyFailed {
  type: "destroyFailed";
  object: LiveObject;
  failures: UpdateFailure[];
  /** The resources that all attempts have deleted, in words. */
  deleted: readonly string[];
}
