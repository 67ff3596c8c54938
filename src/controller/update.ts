import type { LiveObject } from "../../providers/kubernetes/client";
import { adoptsAfterCrash, parseObject, statusOf } from "../../stacks/contract/kind";
import { stackName } from "../../stacks/contract/object";
import type { UpResult } from "../automation/engine";
import type { UpdateFailure } from "../automation/failures";
import type { Program } from "../automation/program";
import { isFresh } from "../cache/freshness";
import type { UpdateAction } from "./action";
import { updatingConditions } from "./conditions";
import { isOutdated, loggedFailure, type Reconcile } from "./context";
import { objectForUpdate, refusePluginsCreations, reportMissingState, wasStateMissing } from "./missing-state";
import { asRunning } from "./observe";
import type { Outcome, UpdateFailed } from "./outcome";
import { claimProgram, readProgramInputs } from "./program";
import { ProgressStatus } from "./progress-status";
import { type Binding, bindingOptions, proposeUpdate } from "./propose";
import { removePlannedUntracked, removeUntracked } from "./untracked";

/** Brings an object's stack in line with the object. */
export async function executeUpdate(reconcile: Reconcile, action: UpdateAction): Promise<Outcome> {
  const { context, item, object: found, state, logger, signal } = reconcile;
  const { kind, writer, cache } = context;
  const { liveState } = kind.capabilities;
  const watched = cache.watched(item.key);
  const { reconsidered } = state;
  const progress = new ProgressStatus(reconcile);
  let partial: UpdateFailed["partial"];
  const failed = async (failures: UpdateFailed["failures"]): Promise<Outcome> => {
    const isCurrent = isSameAs(watched, cache.watched(item.key)) && state.reconsidered === reconsidered;
    if (!isCurrent) return { type: "stale" };
    return { type: "updateFailed", object: await progress.end(), failures, partial };
  };
  try {
    const parsed = parseObject(kind, found);
    const inputs = await readProgramInputs(reconcile, parsed);
    inputs.owned = asRunning(inputs.owned, action.postponed);
    if (action.onlyLacking && liveState?.needsReconcile(parsed, inputs.owned, inputs.watched).length === 0) {
      return { type: "unneeded" }; // a cache is behind; the event that is still to come leads here again
    }
    const program = claimProgram(reconcile, parsed, inputs);
    const proposal = action.gate === "none" ? undefined : await proposeUpdate(reconcile, action, program.of(found));
    if (proposal?.type === "proposed") return proposal;
    if (proposal?.type === "failed") return await failed(proposal.failures);
    const binding = proposal?.binding;

    const object = await writer.addFinalizer(found, state.writes);
    progress.object = object;
    const live = object === found ? await writer.current(found, state.writes) : object;
    if (!isFresh(found, live)) return { type: "stale" };

    const isKnown = statusOf(object).stack !== undefined;
    const conditions = updatingConditions(object.metadata.generation ?? 0, action.cause, isKnown);
    await progress.begin(conditions, action.progressReport);
    if (action.replaced.length > 0) state.replacements.happened(performance.now());
    state.lastAttempt = undefined; // of one that is cut off, this process knows no more than the next
    state.lastComparison = undefined; // what is applied makes it untrue
    const result = await up(reconcile, program.of(object), action.refresh, binding);
    context.metrics.ran(result, action.cause);
    state.stackUnlisted = false;
    const wasMissing = wasStateMissing(reconcile, result);
    if (wasMissing) reportMissingState(reconcile);
    if (result.interrupted) return { type: "stale" };
    if (result.failures.length + program.conflicts.length > 0) {
      partial = { result, program };
      return await failed([...result.failures, ...program.conflicts]);
    }
    if (binding !== undefined) await removePlannedUntracked(reconcile, binding.untracked, { isGone: false });
    else if (action.mayHaveUntracked || wasMissing) {
      await removeUntracked(reconcile, result.resources, { release: false });
    }
    const ended = await writer.removeDecision(await progress.end(), state.writes);
    return { type: "updated", action, object: ended, result, program, approval: binding?.approval };
  } catch (error) {
    if (isOutdated(error) || signal.aborted) return { type: "stale" };
    return await failed([loggedFailure(error, logger)]);
  } finally {
    await progress.end();
  }
}

/**
 * Before a destroy: an update that was cut off may have made what the state does not have and a destroy would leave
 * behind. The same update once more adopts that, as it does what a state had that is lost.
 *
 * @returns why it failed; `undefined` when it was interrupted
 */
export async function updateBeforeDestroy(reconcile: Reconcile): Promise<UpdateFailure[] | undefined> {
  const { context, object: found, state, logger, signal } = reconcile;
  const { kind, metrics, writer } = context;
  let failures: UpdateFailure[];
  try {
    const parsed = parseObject(kind, found);
    const program = claimProgram(reconcile, parsed, await readProgramInputs(reconcile, parsed));
    const object = await writer.addFinalizer(found, state.writes);
    const result = await up(reconcile, program.of(object));
    metrics.ran(result, "Retrying");
    if (result.interrupted) return undefined;
    if (wasStateMissing(reconcile, result)) reportMissingState(reconcile);
    failures = result.failures;
  } catch (error) {
    if (isOutdated(error) || signal.aborted) return undefined;
    failures = [loggedFailure(error, logger)];
  }
  if (failures.length > 0) logger.info({ failures }, "failed to finish the last update before the destroy");
  return failures;
}

async function up(reconcile: Reconcile, program: Program, refresh = false, binding?: Binding): Promise<UpResult> {
  const { context, item, signal } = reconcile;
  const { kind, engine } = context;
  await refusePluginsCreations(reconcile, program);
  const { sdkRuntime } = kind.capabilities;
  // What no state has after a crash may need another approval.
  const savesOnce = binding?.approval === undefined && adoptsAfterCrash(kind);
  const object = objectForUpdate(reconcile);
  const options = { signal, object, sdkRuntime, savesOnce, ...bindingOptions(binding) };
  return engine.up(stackName(kind, item.key), program, { refresh: refresh || binding !== undefined, ...options });
}

/** Whether the same objects are there as before, and none of them has begun to be deleted. */
function isSameAs(before: readonly LiveObject[], after: readonly LiveObject[]): boolean {
  const names = (objects: readonly LiveObject[]) =>
    objects.map(({ metadata }) => `${metadata.uid} ${metadata.deletionTimestamp ?? ""}`).sort();
  return names(before).join() === names(after).join();
}
