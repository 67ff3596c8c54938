import type { ClassifiedError } from "../../providers/errors";
import { type Condition, findCondition, type NewCondition } from "../../stacks/contract/condition";
import type { UpdateFailure, UpdateResult } from "../automation/engine";
import { visibleLines } from "../text/plain-text";
import type { Cause } from "./decide";

const MAX_MESSAGE = 2_000;

const SUCCEEDED = "all that the object stands for is as specified";
const WAITING = { reason: "Waiting", message: "will go on when that is gone" };
const IN_PROGRESS: Record<Cause, string> = {
  Creating: "making what the object stands for",
  Updating: "bringing what exists to the new spec",
  Requested: "comparing everything, as asked",
  ProgramChanged: "bringing what exists to the operator's new version",
  Repairing: "putting right what was changed from outside",
  Retrying: "trying again",
};

/** While an update runs. `Ready` keeps what it says of an earlier generation, unless it never said anything. */
export function updatingConditions(generation: number, cause: Cause, knownReady: boolean): NewCondition[] {
  const reconciling: NewCondition = {
    type: "Reconciling",
    status: "True",
    reason: cause,
    message: IN_PROGRESS[cause],
    observedGeneration: generation,
  };
  if (knownReady) return [reconciling];
  return [{ ...reconciling, type: "Ready", status: "Unknown" }, reconciling];
}

/** After an update that succeeded. */
export function succeededConditions(generation: number): NewCondition[] {
  return [
    { type: "Ready", status: "True", reason: "Succeeded", message: SUCCEEDED, observedGeneration: generation },
    notSo("Reconciling", generation),
    notSo("Stalled", generation),
  ];
}

/**
 * After something failed: `Stalled` when only the user can put it right, else `Reconciling`, as it is tried again: by the
 * clock, or when what is waited for has ended.
 */
export function failedConditions(generation: number, failures: readonly UpdateFailure[]): NewCondition[] {
  const terminal = isTerminal(failures);
  const first = failures.find(({ errorClass }) => errorClass !== "pending") ?? failures[0];
  const reason = first?.reason ?? "UpdateFailed";
  const message = describeFailures(failures);
  return [
    { type: "Ready", status: "False", reason, message, observedGeneration: generation },
    terminal
      ? notSo("Reconciling", generation)
      : {
          type: "Reconciling",
          status: "True",
          ...(isWaiting(failures) ? WAITING : { reason: "Retrying", message: "will be tried again" }),
          observedGeneration: generation,
        },
    terminal
      ? { type: "Stalled", status: "True", reason, message, observedGeneration: generation }
      : notSo("Stalled", generation),
  ];
}

/** While an object is being deleted, with what that waits for, or why it does not succeed. */
export function deletingConditions(generation: number, failures: readonly UpdateFailure[]): NewCondition[] {
  const failed = failures.some(({ errorClass }) => errorClass !== "pending");
  const details = describeFailures(failures);
  const message = failed ? `deletion will be tried again: ${details}` : details || "deleting what was made";
  return [
    {
      type: "Ready",
      status: "False",
      reason: failed ? "DeletionFailed" : "Deleting",
      message,
      observedGeneration: generation,
    },
    { type: "Reconciling", status: "True", reason: "Deleting", message, observedGeneration: generation },
    notSo("Stalled", generation),
  ];
}

/** While an object is not to be worked on. `Ready` keeps what it said. */
export function pausedConditions(generation: number): NewCondition[] {
  return [
    {
      type: "Reconciling",
      status: "False",
      reason: "Paused",
      message: "nothing is done while the annotation kindstack.dev/paused is true",
      observedGeneration: generation,
    },
  ];
}

/** While what ended by itself is not replaced yet, for its replacements end as well. `Ready` keeps what it said. */
export function backOffConditions(generation: number, ended: readonly string[]): NewCondition[] {
  const [first, ...others] = ended;
  const what = others.length === 0 ? `${first}` : `${first} and ${others.length} more`;
  return [
    {
      type: "Reconciling",
      status: "True",
      reason: "BackOff",
      message: `ended soon after the one before: ${what}; replaced later each time, 5 min at most`,
      observedGeneration: generation,
    },
  ];
}

/** After a pause, or a back-off, in which nothing happened that calls for an update. */
export function resumedConditions(generation: number): NewCondition[] {
  return [notSo("Reconciling", generation)];
}

/** While somebody undoes every repair, and when that is over. */
export function contestedConditions(generation: number, contest: string | undefined): NewCondition[] {
  return [
    contest === undefined
      ? {
          type: "Contested",
          status: "False",
          reason: "Settled",
          message: "repairs last",
          observedGeneration: generation,
        }
      : {
          type: "Contested",
          status: "True",
          reason: "FieldContested",
          message: `${contest}; it is put right less and less often`,
          observedGeneration: generation,
        },
  ];
}

/** While an object's resources cannot be compared with what they should be. `Ready` keeps what it said. */
export function driftUnknownCondition(observedGeneration: number, failure: ClassifiedError | undefined): NewCondition {
  const type = "DriftUnknown";
  if (failure === undefined) return notSo(type, observedGeneration);
  const message = `drift cannot be detected: ${describeFailures([failure])}`;
  return { type, status: "True", reason: failure.reason, message, observedGeneration };
}

/** That it is not so, or not any more: `composeStatus` leaves it out. */
function notSo(type: "Reconciling" | "Stalled" | "DriftUnknown", observedGeneration: number): NewCondition {
  return { type, status: "False", reason: `Not${type}`, message: "", observedGeneration };
}

/** Whether an update has begun and not succeeded: before it failed or was cut off it may have made something. */
export function isUnfinished(conditions: Condition[] | undefined): boolean {
  const reconciling = findCondition(conditions, "Reconciling");
  return reconciling?.status === "True" && !["Deleting", "BackOff", WAITING.reason].includes(reconciling.reason);
}

/** Nothing failed that a try after a time would mend: it is tried again when what is waited for has ended. */
export function isWaiting(failures: readonly UpdateFailure[]): boolean {
  const classes = failures.map(({ errorClass }) => errorClass);
  return classes.includes("pending") && classes.every((is) => is === "pending" || is === "terminal");
}

/** Nothing is gained by trying again as long as each failure waits for the user. */
export function isTerminal(failures: readonly UpdateFailure[]): boolean {
  return failures.length > 0 && failures.every(({ errorClass }) => errorClass === "terminal");
}

/** For conditions and Events. What it quotes of objects and answers has no effect on the terminals that show these. */
export function describeFailures(failures: readonly Pick<UpdateFailure, "resource" | "message">[]): string {
  const text = visibleLines(
    failures.map(({ resource, message }) => (resource ? `${resource}: ${message}` : message)).join("; "),
  );
  if (text.length <= MAX_MESSAGE) return text;
  return `${text.slice(0, MAX_MESSAGE - 1).replace(/[\ud800-\udbff]$/, "")}…`; // no half of a character
}

/** `2 created, 1 deleted`, for events and logs; empty when nothing changed. */
export function describeChanges(changes: UpdateResult["changes"]): string {
  const words = { create: "created", update: "updated", delete: "deleted", replace: "replaced" } as const;
  return Object.entries(words)
    .flatMap(([operation, word]) => {
      const count = changes[operation as keyof typeof words];
      return count ? [`${count} ${word}`] : [];
    })
    .join(", ");
}
