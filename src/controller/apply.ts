import type { LiveObject } from "../../providers/kubernetes/client";
import { statusOf } from "../../stacks/contract/kind";
import type { UpResult } from "../automation/engine";
import type { UpdateFailure } from "../automation/event-log";
import { describeDeleted } from "../automation/event-log";
import { isFresh } from "../cache/freshness";
import { declaresTheSame } from "../plan/digest";
import { refuseUnknown } from "../plan/plan";
import type { Action, DestroyAction, UpdateAction } from "./action";
import { asRunning } from "./collect-facts";
import { deletingConditions, updatingConditions } from "./conditions";
import { failureToTell, isOutdated, type Reconcile, type Step } from "./context";
import { passGate } from "./gate";
import type { Outcome, UpdateFailed } from "./outcome";
import { claimProgram, ObjectStack } from "./stack";

/** How long an update before a destroy may take: what it is to take over is there already, or is not made. */
const FINISH_MS = 30_000;

/** Does what was decided. What came of it is recorded afterwards. */
export async function apply(reconcile: Reconcile, action: Action): Promise<Outcome> {
  const { context, object, state, logger, progress } = reconcile;
  switch (action.type) {
    case "nothing":
    case "backOff":
      return { ...action, type: "rests" };
    case "pause":
      return { ...action, type: "rests", requeueAfterMs: 0 };
    case "wait":
      return { ...action, type: "waits", failures: (await state.blockers?.describe(context)) ?? [] };
    case "recordOrphan":
      await context.writer.recordOrphaned(object, state.writes);
      state.orphaned = "recorded";
      return { type: "prepared" };
    case "addFinalizer":
      await context.writer.addFinalizer(object, state.writes);
      logger.info("finalizer restored");
      return { type: "prepared" };
  }
  try {
    const problem = await context.backend.problem();
    if (problem !== undefined) return failedOutcome(reconcile, action, problem);
    return await operate(reconcile, action);
  } catch (error) {
    return failedOutcome({ object: await progress.end(), state }, action, failureToTell(error, reconcile));
  } finally {
    await progress.end();
  }
}

/** An action that needs the state. */
type Operation = Exclude<Action, { type: "nothing" | "backOff" | "pause" | "wait" | "recordOrphan" | "addFinalizer" }>;

/** What comes of an operation that has failed where the engine has nothing to tell. */
function failedOutcome(
  { object, state }: Pick<Reconcile, "object" | "state">,
  action: Operation,
  failure: UpdateFailure,
): Outcome {
  const failures = [failure];
  if (action.type === "preview") return { type: "previewed", resources: [], failures };
  if (action.type === "update" || action.type === "finish")
    return { type: "updateFailed", action, object, failures, partial: undefined };
  return { type: "destroyFailed", object, failures, deleted: state.blockers?.deleted ?? [] };
}

async function operate(reconcile: Reconcile, action: Operation): Promise<Outcome> {
  const stack = new ObjectStack(reconcile);
  switch (action.type) {
    case "preview":
      return preview(reconcile, stack);
    case "finish": {
      const limited = { ...reconcile, stop: AbortSignal.timeout(FINISH_MS) };
      return applyUpdate(limited, new ObjectStack(limited), action);
    }
    case "update": {
      const skipped = await skipUnchanged(reconcile, stack, action);
      if (skipped !== undefined) return skipped;
      if (action.onlyProgram && reconcile.context.rollout?.begin(reconcile.item.key) === false) return { type: "left" };
      return applyUpdate(reconcile, stack, action);
    }
    case "destroy":
      return applyDestroy(reconcile, stack, action);
  }
}

/**
 * What comes of an update that is due only as the code of the program is new, where that declares what was applied; `undefined` for
 * any other update, and where the program fails: its update tells of that.
 */
async function skipUnchanged(
  { context, object, facts, signal }: Step<"object" | "facts" | "signal", "kind" | "planKey" | "programDigest">,
  stack: Pick<ObjectStack, "read" | "program">,
  action: UpdateAction,
): Promise<Outcome | undefined> {
  const { stack: former } = facts.object.status;
  if (former === undefined || action.cause !== "ProgramChanged" || facts.drift.ids.length > 0) return undefined;
  try {
    const { parsed, inputs } = await stack.read();
    const owned = asRunning(inputs.owned, action.postponed);
    const program = stack.program(parsed, { ...inputs, owned })(object);
    return (await declaresTheSame(context, former, program)) ? { type: "sameDeclarations", object, former } : undefined;
  } catch (error) {
    if (isOutdated(error) || signal.aborted) throw error;
    return undefined;
  }
}

/** Finds out what an update would do, with what has drifted, and does nothing: neither to the object nor to its stack. */
async function preview({ object }: Pick<Reconcile, "object">, stack: ObjectStack): Promise<Outcome> {
  const { parsed, inputs } = await stack.read();
  const plan = await stack.planUpdate(stack.program(parsed, inputs)(object), { binds: false });
  if (plan.failures.length > 0) return { type: "previewed", resources: [], failures: plan.failures };
  refuseUnknown(plan);
  return { type: "previewed", resources: plan.resources.map(({ shown }) => shown), failures: [] };
}

/** Brings an object's stack in line with the object. */
async function applyUpdate(reconcile: Reconcile, stack: ObjectStack, action: UpdateAction): Promise<Outcome> {
  const { context, object: found, state, signal, stop, progress } = reconcile;
  const { kind, writer } = context;
  const { liveState } = kind.capabilities;
  const isLast = action.type === "finish";
  let partial: UpdateFailed["partial"];
  let hasBegun = false;
  const failed = async (failures: UpdateFailed["failures"]): Promise<Outcome> => {
    return { type: "updateFailed", action, object: await progress.end(), failures, partial };
  };
  const stopped = async (object: LiveObject, result?: UpResult): Promise<Outcome> => {
    if (isLast) return await failed([lateFinish(result)]);
    const mayBeUnrecorded = action.mayHaveUntracked || result?.unrecorded === true;
    state.recorded = mayBeUnrecorded ? undefined : found.metadata.uid;
    return result === undefined ? { type: "stale" } : { type: "interrupted", object, result };
  };
  try {
    const { parsed, inputs: read } = await stack.read();
    const inputs = { ...read, owned: asRunning(read.owned, action.postponed) };
    const lacking = action.onlyLacking && (await liveState?.needsReconcile(parsed, inputs.owned, inputs.watched));
    if (lacking && lacking.length === 0) {
      return { type: "left" }; // a cache is behind; the event that is still to come leads here again
    }
    const program = await claimProgram(reconcile, stack, parsed, inputs);
    const pass = await passGate(reconcile, action, () => stack.planUpdate(program.of(found), { binds: true }));
    if (pass.type === "failed") return await failed(pass.failures);
    if (pass.type !== "pass") return pass;

    const object = await writer.addFinalizer(found, state.writes);
    progress.object = object;
    const live = object === found ? await writer.current(found, state.writes) : object;
    if (!isFresh(found, live)) return { type: "stale" };

    const isKnown = statusOf(object).stack !== undefined;
    const conditions = updatingConditions(action.cause, isKnown);
    await progress.begin(conditions, action.progressReport);
    if (action.replaced.length > 0) state.replacements.happened(performance.now());
    state.recorded = undefined;
    state.lastAttempt = undefined; // of one that is cut off, this process knows no more than the next
    state.lastPreview = undefined; // what is applied makes it untrue
    hasBegun = true;
    const result = await stack.up(program.of(object), pass, action);
    context.metrics.ran(result, action.cause);
    state.stackUnlisted = false;
    if (result.interrupted && stop.aborted && !signal.aborted) return await stopped(object, result);
    if (result.interrupted) return { type: "interrupted", object, result };
    if (result.failures.length + program.conflicts.length > 0) {
      partial = { result, program };
      return await failed([...result.failures, ...program.conflicts]);
    }
    return { type: "updated", action, object: await progress.end(), result, pass, program };
  } catch (error) {
    if (stop.aborted && !hasBegun && !signal.aborted) return await stopped(found);
    throw error;
  }
}

/** Why an update before a destroy has not ended. One that has made something may come further when it is tried again. */
function lateFinish(result: UpResult | undefined): UpdateFailed["failures"][number] {
  const hasProgressed = (result?.summary.resourceChanges.create ?? 0) > 0;
  const message = "the update before the deletion took too long";
  return { errorClass: "retryable", reason: hasProgressed ? "Interrupted" : "Timeout", message };
}

/** Destroys what an object's stack has. The finalizer is removed when that is recorded. */
async function applyDestroy(reconcile: Reconcile, stack: ObjectStack, action: DestroyAction): Promise<Outcome> {
  const { context, object, state, progress } = reconcile;
  const { release } = action;
  const before = state.blockers?.deleted ?? [];
  const pass = await passGate(reconcile, action, () => stack.planDestroy(release));
  if (pass.type === "failed") return { type: "destroyFailed", object, failures: pass.failures, deleted: before };
  if (pass.type !== "pass") return pass;
  if (!action.progressReported) {
    const { namespace, name } = object.metadata;
    const place = namespace === undefined ? "" : ` from the namespace ${namespace}`;
    context.writer.event(object, "Normal", "Deleting", `Custom Resource ${name} is being deleted${place}`);
    await progress.begin(deletingConditions([]), "late");
  }
  state.lastPreview = undefined; // what is deleted makes it untrue
  const result = await stack.destroy(release, pass);
  context.metrics.ran(result, "Deleting");
  if (result.interrupted) return { type: "interrupted", object, result };
  const deleted = [...before, ...describeDeleted(result)];
  const ended = await progress.end();
  if (result.summary.result === "succeeded") return { type: "destroyed", action, object: ended, result, deleted, pass };
  return { type: "destroyFailed", object: ended, failures: result.failures, deleted };
}
