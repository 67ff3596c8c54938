import { adoptsAfterCrash } from "../../stacks/contract/kind";
import { stackName } from "../../stacks/contract/object";
import type { OpMap } from "../automation/engine";
import type { UpdateFailure } from "../automation/failures";
import { urnsIn } from "../automation/stack-state";
import { isScaffolding } from "../automation/urn";
import type { DestroyAction } from "./action";
import { deletingConditions } from "./conditions";
import { isOutdated, loggedFailure, type Reconcile } from "./context";
import type { Outcome } from "./outcome";
import { ProgressStatus } from "./progress-status";
import { bindingOptions, proposeDestroy } from "./propose";
import { removeDeletedWith, removePlannedUntracked, removeUntracked } from "./untracked";
import { finishUpdate } from "./update";

/** Destroys what an object's stack has. The finalizer is removed when that is recorded. */
export async function executeDestroy(reconcile: Reconcile, action: DestroyAction): Promise<Outcome> {
  const { context, item, object, logger, signal, unblocked } = reconcile;
  const { kind, engine, metrics } = context;
  const deletedBefore = unblocked?.deleted ?? 0;
  // Where that cannot be told, the destroy reports why.
  const emptied = action.mayBeEmpty ? await removeEmptied(reconcile).catch(() => undefined) : undefined;
  if (emptied !== undefined) return { type: "destroyed", action, object, changes: emptied, deletedBefore };
  const progress = new ProgressStatus(reconcile);
  let failures: UpdateFailure[];
  let deleted = deletedBefore;
  try {
    const proposal = action.gate === "none" ? undefined : await proposeDestroy(reconcile, action);
    if (proposal?.type === "proposed") return proposal;
    if (proposal?.type === "failed") return { type: "destroyFailed", object, failures: proposal.failures, deleted };
    const binding = proposal?.binding;
    if (action.finishUpdate) {
      const unfinished = await finishUpdate(reconcile, action);
      if (unfinished === undefined) return { type: "stale" };
      if (unfinished.length > 0) return { type: "destroyFailed", object, failures: unfinished, deleted };
    }
    if (!action.progressReported) await reportDestroy(reconcile, progress);
    // What is gone after a crash needs no other approval, though the state still has it.
    const options = { release: action.release, signal, savesOnce: adoptsAfterCrash(kind), ...bindingOptions(binding) };
    reconcile.state.lastComparison = undefined; // what is deleted makes it untrue
    const result = await engine.destroy(stackName(kind, item.key), options);
    metrics.ran(result, "Deleting");
    if (result.interrupted) return { type: "stale" };
    const { resourceChanges: changes } = result.summary;
    if (result.summary.result === "succeeded") {
      if (binding !== undefined) await removePlannedUntracked(reconcile, binding.untracked, { isGone: true });
      else if (!action.release) await removeDeletedWith(reconcile);
      if (binding === undefined && action.mayHaveUntracked) {
        await removeUntracked(reconcile, [], { release: action.release });
      }
      return {
        type: "destroyed",
        action,
        object: await progress.end(),
        changes,
        deletedBefore,
        approval: binding?.approval,
      };
    }
    failures = result.failures;
    deleted += changes.delete ?? 0;
  } catch (error) {
    if (isOutdated(error) || signal.aborted) return { type: "stale" };
    failures = [loggedFailure(error, logger)];
  } finally {
    await progress.end();
  }
  return { type: "destroyFailed", object: await progress.end(), failures, deleted };
}

function reportDestroy({ context, object }: Reconcile, progress: ProgressStatus): Promise<void> {
  const { namespace, name, generation = 0 } = object.metadata;
  const place = namespace === undefined ? "" : ` from the namespace ${namespace}`;
  context.writer.event(object, "Normal", "Deleting", `Custom Resource ${name} is being deleted${place}`);
  return progress.begin(deletingConditions(generation, []), "late");
}

/**
 * Removes the stack's state when all that it still had is gone by now: a second destroy would do no more.
 *
 * @returns what was deleted; `undefined` when there is more
 */
async function removeEmptied({ context, item, signal, unblocked }: Reconcile): Promise<OpMap | undefined> {
  if (unblocked === undefined || !(await unblocked.areGone(context))) return undefined;
  const { kind, engine, metrics } = context;
  const stack = stackName(kind, item.key);
  const startTime = new Date();
  const state = await engine.exportStack(stack, signal);
  const isEmptied = state && urnsIn(state).every((urn) => isScaffolding(urn) || unblocked.urns.includes(urn));
  if (!isEmptied) return undefined;
  await engine.removeStack(stack, signal);
  const resourceChanges = { delete: unblocked.urns.length };
  const summary = { kind: "destroy", startTime, endTime: new Date(), result: "succeeded", resourceChanges } as const;
  metrics.ran({ summary, interrupted: false, failures: [] }, "Deleting");
  return resourceChanges;
}
