import type { Failure } from "../../providers/errors";
import { type Condition, findCondition, type NewCondition } from "../../stacks/contract/condition";
import { isPaused } from "../../stacks/contract/readiness";
import type { UpdateFailure } from "../automation/event-log";
import { describeAll, describeFailures, outcomeOf } from "./describe";

/** Why an update runs; the reason of the condition while it does. */
export type Cause =
  | "Creating"
  | "Updating"
  | "ProgramChanged"
  | "Requested"
  | "Refreshing"
  | "Repairing"
  | "Retrying"
  | "Finishing";

/** The reason of `Ready` and of `Reconciling` while what a stack made does not work yet. */
export const PROGRESSING = "Progressing";
/** The reason of `Synced` while an object is only observed and an update would change something. */
export const OBSERVED = "Observed";

/** The reason of `Synced` while a plan waits for an approval. */
export const WAITS_FOR_APPROVAL = "WaitsForApproval";

/** Whether `Synced` is False only because the mode applies no changes: `Ready` tells of what was applied last. */
export function isUnapplied({ reason }: Pick<Condition, "reason">): boolean {
  return reason === OBSERVED || reason === WAITS_FOR_APPROVAL;
}

const SUCCEEDED = "all resources are up to date";
const WAITING = { reason: "Waiting", message: "waiting for another resource; see the message of Ready" };
const IN_PROGRESS: Record<Cause, string> = {
  Creating: "creating resources",
  Updating: "updating resources to the new spec",
  Requested: "comparing all resources, as requested",
  Refreshing: "comparing all resources, as the kind does from time to time",
  ProgramChanged: "updating resources to the operator's new version",
  Repairing: "correcting drift",
  Retrying: "trying again",
  Finishing: "finishing the last update before the deletion",
};

/** Objects at rest share these: what each would keep of its own takes 0.4 KiB. */
const NOT_SO = { Reconciling: quiet("Reconciling"), Stalled: quiet("Stalled"), DriftUnknown: quiet("DriftUnknown") };
/** After an update that succeeded. */
export const SUCCEEDED_CONDITIONS: readonly NewCondition[] = atRest({
  status: "True",
  reason: "Succeeded",
  message: SUCCEEDED,
});

/* Conditions have the generation of the reconcile that reports them, unless they say another one. */

/** While an update runs. `Synced` keeps what it says of an earlier generation, unless it never said anything. */
export function updatingConditions(cause: Cause, isKnown: boolean): NewCondition[] {
  const why = { reason: cause, message: IN_PROGRESS[cause] };
  const reconciling: NewCondition = { type: "Reconciling", status: "True", ...why };
  return isKnown ? [reconciling] : [{ type: "Synced", status: "Unknown", ...why }, reconciling];
}

/**
 * After something failed: `Stalled` when only the user can correct it, else `Reconciling`, as it is tried again: by the
 * clock, or when what is waited for has ended.
 */
export function failedConditions(failures: readonly UpdateFailure[]): NewCondition[] {
  const first = failures.find(({ errorClass }) => errorClass !== "pending") ?? failures[0];
  const why = { reason: first?.reason ?? "UpdateFailed", message: describeFailures(failures) };
  const notSynced: NewCondition = { type: "Synced", status: "False", ...why };
  const ended = outcomeOf(failures);
  if (ended === "terminal") return [notSynced, notSo("Reconciling"), { type: "Stalled", status: "True", ...why }];
  const next = ended === "pending" ? WAITING : { reason: "Retrying", message: "will be tried again" };
  return [notSynced, { type: "Reconciling", status: "True", ...next }, notSo("Stalled")];
}

/** While an object is being deleted, with what that waits for, or why it does not succeed. */
export function deletingConditions(failures: readonly UpdateFailure[]): NewCondition[] {
  const failed = failures.some(({ errorClass }) => errorClass !== "pending");
  // The condition has a reason of its own.
  const details = describeFailures(failures.map(withReason));
  const message = failed ? `deletion will be tried again: ${details}` : details || "deleting resources";
  const missing = failures.find(({ reason }) => reason === "StateMissing");
  if (missing !== undefined) {
    const { reason, message } = missing;
    const stalled: NewCondition = { type: "Stalled", status: "True", reason, message };
    return [...beingDeleted(reason, message).filter(({ type }) => type !== "Stalled"), stalled];
  }
  const conditions = beingDeleted(failed ? "DeletionFailed" : "Deleting", message);
  // Once is enough for what may be long.
  return conditions.map((one) =>
    failed && one.type === "Reconciling" ? { ...one, message: "deletion will be tried again; see Synced" } : one,
  );
}

/** While an object is being deleted, and an update that comes before the destroy fails: a process that restarts tries it again. */
export function finishingConditions(failures: readonly UpdateFailure[]): NewCondition[] {
  return deletingConditions(failures).map((condition) =>
    condition.type === "Reconciling" ? { ...condition, reason: "Finishing" } : condition,
  );
}

function withReason({ errorClass, reason, resource, message }: UpdateFailure) {
  return { ...(resource && { resource }), message: errorClass === "pending" ? message : `${reason}: ${message}` };
}

/** When nothing of an object is left but the object, which other controllers keep by their finalizers. */
export function keptConditions(finalizers: readonly string[]): NewCondition[] {
  if (finalizers.length === 0) return [];
  const message = `Kindstack is done; the object waits for its other finalizers: ${finalizers.join(", ")}`;
  return beingDeleted("Deleting", message);
}

function beingDeleted(reason: string, message: string): NewCondition[] {
  return [
    { type: "Synced", status: "False", reason, message },
    { type: "Reconciling", status: "True", reason: "Deleting", message },
    notSo("Stalled"),
  ];
}

/**
 * While an object is not to be worked on. What waits makes an object that was synced one that is not.
 *
 * @param problem an annotation that cannot be understood @param waiting what would be done, in words
 * @param synced what the object says so far
 */
export function pausedConditions(
  problem: string | undefined,
  waiting: readonly string[],
  synced: Condition | undefined,
): NewCondition[] {
  const why = problem ?? "reconciliation is paused by the annotation kindstack.dev/paused";
  const until = problem === undefined ? "it is removed" : "it is corrected";
  const rest =
    problem === undefined && waiting.length === 0 ? why : `${why}; until ${until}, nothing is updated or deleted`;
  const message = waiting.length === 0 ? rest : `${rest}. ${describeAll(waiting)}`;
  const reason = problem === undefined ? "Paused" : "InvalidAnnotation";
  const conditions: NewCondition[] = [notSo("Reconciling"), { type: "Paused", status: "True", reason, message }];
  if (synced === undefined || (synced.status !== "True" && !isPaused(synced))) return conditions;
  const { lastTransitionTime: _, ...said } = synced;
  if (waiting.length > 0) return [...conditions, { ...said, status: "False", reason, message }];
  return isPaused(synced)
    ? [...conditions, { ...said, status: "True", reason: "Succeeded", message: SUCCEEDED }]
    : conditions;
}

/** While what completed by itself is not replaced yet, as its replacements complete as well. `Synced` keeps what it said. */
export function backOffConditions(completed: readonly string[]): NewCondition[] {
  const [first, ...others] = completed;
  const what = others.length === 0 ? `${first}` : `${first} and ${others.length} more`;
  const message = `${what} exited soon after starting; retrying with back-off (max 5 min)`;
  return [{ type: "Reconciling", status: "True", reason: "BackOff", message }];
}

/** The reason of `Synced` while others undo each repair. */
export const CONFLICT = "FieldConflict";

/** What {@link conflictConditions} say of a conflict. */
export function conflictMessage(conflict: string): string {
  return `${conflict}; repairs back off (max 5 min)`;
}

/** After an update, while another client, or admission, undoes each repair: the stack is not as the object says. */
export function conflictConditions(message: string): NewCondition[] {
  return [
    ...atRest({ status: "False", reason: CONFLICT, message }),
    { type: "FieldConflict", status: "True", reason: "RepairsReverted", message },
  ];
}

/** When that is over. */
export function conflictOverConditions(): NewCondition[] {
  const over = { status: "False", reason: "Settled", message: "no field conflict" } as const;
  return [...SUCCEEDED_CONDITIONS, { type: "FieldConflict", ...over }];
}

/** While an object is only observed: what an update would do. */
export function observedConditions(changes: readonly string[]): readonly NewCondition[] {
  if (changes.length === 0) return SUCCEEDED_CONDITIONS;
  const message = `only observed; an update would: ${describeAll(changes)}`;
  return atRest({ status: "False", reason: OBSERVED, message });
}

/** While a plan waits for an approval. @param message what it does, and what was decided on it */
export function waitsForApprovalConditions(message: string): NewCondition[] {
  return atRest({ status: "False", reason: WAITS_FOR_APPROVAL, message });
}

/** While an object is neither being reconciled nor stalled. */
function atRest(synced: Pick<NewCondition, "status" | "reason" | "message">): NewCondition[] {
  return [{ type: "Synced", ...synced }, notSo("Reconciling"), notSo("Stalled")];
}

/** While an object's resources cannot be compared with what they should be. `Synced` keeps what it said. */
export function driftUnknownCondition(failure: Pick<Failure, "reason" | "message"> | undefined): NewCondition {
  if (failure === undefined) return notSo("DriftUnknown");
  const message = `drift cannot be detected: ${describeFailures([failure])}`;
  return { type: "DriftUnknown", status: "True", reason: failure.reason, message };
}

function quiet(type: string): NewCondition {
  return { type, status: "False", reason: `Not${type}`, message: "" };
}

/** The condition with the status False, which `composeStatus` omits. */
export function notSo(type: keyof typeof NOT_SO): NewCondition {
  return NOT_SO[type];
}

/** Whether an update has begun and not succeeded: it may have made something before it failed or was cut off. */
export function isUnfinished(conditions: Condition[] | undefined): boolean {
  const reconciling = findCondition(conditions, "Reconciling");
  return (
    reconciling?.status === "True" && !["Deleting", "BackOff", WAITING.reason, PROGRESSING].includes(reconciling.reason)
  );
}

/** Those that a status does not say: others may have written it, or an operator has ended before it did. */
export function newsAmong(wanted: readonly NewCondition[], conditions: Condition[] | undefined): NewCondition[] {
  return wanted.filter((condition) => !isReported(conditions, condition));
}

/** Whether a status says this already. A condition other than `Synced` that is False is not in the status. */
export function isReported(
  conditions: Condition[] | undefined,
  { type, status, reason, message }: NewCondition,
): boolean {
  const reported = findCondition(conditions, type);
  if (type !== "Synced" && status === "False") return reported === undefined;
  return reported?.status === status && reported.reason === reason && reported.message === message;
}
