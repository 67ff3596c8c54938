import type { LiveObject } from "../../providers/kubernetes/client";
import type { UpdateResult } from "../automation/engine";
import type { UpdateFailure } from "../automation/failures";
import { deletingConditions } from "./conditions";
import { isOutdated, loggedFailure, type Reconcile } from "./context";
import { removeOrphans } from "./orphans";
import type { Outcome } from "./outcome";
import type { DestroyPlan } from "./plan";
import { ProgressStatus } from "./progress-status";
import { finishUpdate } from "./update";

/** Destroys what an object's stack has. The finalizer is removed when that is recorded. */
export async function executeDestroy(reconcile: Reconcile, plan: DestroyPlan): Promise<Outcome> {
  const { context, object, facts, logger, signal, unblocked } = reconcile;
  const { metrics, stacks, writer } = context;
  const deletedBefore = unblocked?.deleted ?? 0;
  // Where that cannot be told, the destroy reports why.
  const emptied = plan.mayBeEmpty ? await forgetEmptied(reconcile).catch(() => undefined) : undefined;
  if (emptied !== undefined) {
    metrics.ran(emptied, "Deleting");
    return { type: "destroyed", plan, object, changes: emptied.changes, deletedBefore };
  }
  if (plan.finishUpdate && !(await finishUpdate(reconcile))) return { type: "stale" };
  let progress: ProgressStatus | undefined;
  if (!plan.progressReported) {
    const { namespace, name, generation = 0 } = object.metadata;
    const place = namespace === undefined ? "" : ` from the namespace ${namespace}`;
    writer.event(object, "Normal", "Deleting", `Custom Resource ${name} is being deleted${place}`);
    progress = new ProgressStatus(reconcile, object, deletingConditions(generation, []), plan.progressReport);
  }
  const latest = async (): Promise<LiveObject> => (await progress?.end().catch(() => undefined)) ?? object;
  const run = stacks.open(object, signal);
  let failures: UpdateFailure[];
  let deleted = deletedBefore;
  try {
    const result = await run.destroy({ release: plan.release, verified: facts.gone });
    metrics.ran(result, "Deleting");
    if (result.outcome === "interrupted") return { type: "stale" };
    if (result.outcome === "succeeded") {
      if (plan.mayHaveOrphans) await removeOrphans(reconcile, [], { release: plan.release });
      return { type: "destroyed", plan, object: await latest(), changes: result.changes, deletedBefore };
    }
    failures = result.failures;
    deleted += result.changes.delete ?? 0;
  } catch (error) {
    if (isOutdated(error) || signal.aborted) return { type: "stale" };
    failures = [loggedFailure(error, logger)];
  } finally {
    run.close();
    await latest(); // a report that lands after the next reconcile's status would replace it
  }
  return { type: "destroyFailed", object: await latest(), failures, deleted };
}

/**
 * Removes the stack's state when all that it still had is gone by now.
 *
 * @returns `undefined` when there is more
 */
async function forgetEmptied({ context, object, signal, unblocked }: Reconcile): Promise<UpdateResult | undefined> {
  const started = performance.now();
  if (unblocked === undefined || !(await unblocked.areGone(context))) return undefined;
  if (!(await context.stacks.forgetEmptied(object, unblocked.urns, signal))) return undefined;
  return {
    operation: "destroy",
    outcome: "succeeded",
    changes: { delete: unblocked.urns.length },
    resources: [],
    deleted: [],
    failures: [],
    durationMs: performance.now() - started,
  };
}
