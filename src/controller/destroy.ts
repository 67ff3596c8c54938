import { adoptsAfterCrash } from "../../stacks/contract/kind";
import { stackName } from "../../stacks/contract/object";
import type { OpMap } from "../automation/engine";
import type { UpdateFailure } from "../automation/failures";
import { urnsIn } from "../automation/stack-state";
import { isScaffolding } from "../automation/urn";
import { deletingConditions } from "./conditions";
import { isOutdated, loggedFailure, type Reconcile } from "./context";
import { removeOrphans, removePlannedOrphans } from "./orphans";
import type { Outcome } from "./outcome";
import type { DestroyPlan } from "./plan";
import { ProgressStatus } from "./progress-status";
import { heldOptions, proposeDestroy } from "./propose";
import { finishUpdate } from "./update";

/** Destroys what an object's stack has. The finalizer is removed when that is recorded. */
export async function executeDestroy(reconcile: Reconcile, plan: DestroyPlan): Promise<Outcome> {
  const { context, item, object, logger, signal, unblocked } = reconcile;
  const { kind, engine, metrics } = context;
  const deletedBefore = unblocked?.deleted ?? 0;
  // Where that cannot be told, the destroy reports why.
  const emptied = plan.mayBeEmpty ? await removeEmptied(reconcile).catch(() => undefined) : undefined;
  if (emptied !== undefined) return { type: "destroyed", plan, object, changes: emptied, deletedBefore };
  const progress = new ProgressStatus(reconcile);
  let failures: UpdateFailure[];
  let deleted = deletedBefore;
  try {
    const proposal = plan.gate === "none" ? undefined : await proposeDestroy(reconcile, plan);
    if (proposal?.type === "proposed") return proposal;
    if (proposal?.type === "failed") return { type: "destroyFailed", object, failures: proposal.failures, deleted };
    const held = proposal?.held;
    if (plan.finishUpdate && !(await finishUpdate(reconcile))) return { type: "stale" };
    if (!plan.progressReported) await reportDestroy(reconcile, progress);
    const options = { release: plan.release, signal, savesOnce: adoptsAfterCrash(kind), ...heldOptions(held) };
    reconcile.state.lastComparison = undefined; // what is deleted makes it untrue
    const result = await engine.destroy(stackName(kind, item.key), options);
    metrics.ran(result, "Deleting");
    if (result.interrupted) return { type: "stale" };
    const { resourceChanges: changes } = result.summary;
    if (result.summary.result === "succeeded") {
      if (held !== undefined) await removePlannedOrphans(held.orphans);
      else if (plan.mayHaveOrphans) await removeOrphans(reconcile, [], { release: plan.release });
      return {
        type: "destroyed",
        plan,
        object: await progress.end(),
        changes,
        deletedBefore,
        approval: held?.approval,
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
