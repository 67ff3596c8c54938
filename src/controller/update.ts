import type { LiveObject } from "../../providers/kubernetes/client";
import type { DeclaredResource } from "../../providers/registration";
import { parseServed, statusOf } from "../../stacks/contract/kind";
import { isFresh } from "../cache/freshness";
import type { UpdateAction } from "./action";
import { claimProgram } from "./claim-program";
import { updatingConditions } from "./conditions";
import { isOutdated, loggedFailure, type Reconcile } from "./context";
import { declarationsDigest, declaresTheSame } from "./declarations";
import { passGate } from "./gate";
import { explainDecision, reportMissingState } from "./missing-state";
import { asRunning } from "./observe";
import type { Outcome, UpdateFailed } from "./outcome";
import { ProgressStatus } from "./progress-status";
import { removeAfterUpdate } from "./remove-untracked";
import type { ObjectStack } from "./stack";

/** Brings an object's stack in line with the object. */
export async function executeUpdate(reconcile: Reconcile, stack: ObjectStack, action: UpdateAction): Promise<Outcome> {
  const { context, item, object: found, facts, state, logger, signal } = reconcile;
  const { kind, writer, cache } = context;
  const { liveState } = kind.capabilities;
  const watched = cache.watched(item.key);
  const { reconsidered } = state;
  const isLast = action.type === "finish";
  const progress = new ProgressStatus(reconcile);
  let partial: UpdateFailed["partial"];
  const failed = async (failures: UpdateFailed["failures"]): Promise<Outcome> => {
    const isCurrent = isSameAs(watched, cache.watched(item.key)) && state.reconsidered === reconsidered;
    if (!isCurrent) return { type: "stale" };
    const object = await progress.end();
    return isLast ? { type: "finishFailed", object, failures } : { type: "updateFailed", object, failures, partial };
  };
  try {
    const parsed = await parseServed(kind, found);
    const inputs = await stack.inputs(parsed);
    inputs.owned = asRunning(inputs.owned, action.postponed);
    const lacking = action.onlyLacking && (await liveState?.needsReconcile(parsed, inputs.owned, inputs.watched));
    if (lacking && lacking.length === 0) {
      return { type: "unneeded" }; // a cache is behind; the event that is still to come leads here again
    }
    const program = await claimProgram(reconcile, stack, parsed, inputs);
    const isOnlyCode = action.cause === "ProgramChanged" && facts.drift.ids.length === 0;
    const former = isOnlyCode ? facts.object.status.stack : undefined;
    if (former !== undefined && (await declaresTheSame(context, former, program.of(found)))) {
      return { type: "sameDeclarations", object: found, former };
    }
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
    state.lastAttempt = undefined; // of one that is cut off, this process knows no more than the next
    state.lastComparison = undefined; // what is applied makes it untrue
    const told: { declared?: readonly DeclaredResource[] } = {};
    const onDeclared = (declared: readonly DeclaredResource[]) => void Object.assign(told, { declared });
    const result = await stack.up(program.of(object), pass, { refresh: action.refresh, onDeclared });
    context.metrics.ran(result, action.cause);
    state.stackUnlisted = false;
    const wasMissing = reportMissingState(reconcile, result);
    if (result.interrupted) return { type: "stale" };
    if (result.failures.length + program.conflicts.length > 0) {
      partial = { result, program };
      const failures = explainDecision(result.failures, facts.settings.stateDecision, "update");
      return await failed([...failures, ...program.conflicts]);
    }
    const mayHaveUntracked = action.mayHaveUntracked || wasMissing;
    await removeAfterUpdate(reconcile, result, { planned: pass.bound?.untracked, mayHaveUntracked });
    const ended = await writer.removeDecision(await progress.end(), state.writes);
    if (isLast) return { type: "finished", result };
    const declarations = told.declared && (await declarationsDigest(context, told.declared));
    return { type: "updated", action, object: ended, result, program, declarations, pass };
  } catch (error) {
    if (isOutdated(error) || signal.aborted) return { type: "stale" };
    return await failed([loggedFailure(error, logger)]);
  } finally {
    await progress.end();
  }
}

/** Whether the same objects are there as before, and none of them has begun to be deleted. */
function isSameAs(before: readonly LiveObject[], after: readonly LiveObject[]): boolean {
  const names = (objects: readonly LiveObject[]) =>
    objects.map(({ metadata }) => `${metadata.uid} ${metadata.deletionTimestamp ?? ""}`).sort();
  return names(before).join() === names(after).join();
}
