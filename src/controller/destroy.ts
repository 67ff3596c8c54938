import type { LiveObject } from "../../providers/kubernetes/client";
import { findsWhatWasCutOff } from "../../stacks/contract/kind";
import { stackName } from "../../stacks/contract/object";
import type { UpdateResult } from "../automation/engine";
import type { UpdateFailure } from "../automation/failures";
import { isScaffolding } from "../automation/urn";
import { deletingConditions } from "./conditions";
import { isOutdated, loggedFailure, type Reconcile } from "./context";
import { refuseFormerStack } from "./former-stack";
import { removeOrphans } from "./orphans";
import type { Outcome } from "./outcome";
import type { DestroyPlan } from "./plan";
import { ProgressStatus } from "./progress-status";
import { finishUpdate } from "./update";

/** Destroys what an object's stack has. The finalizer is removed when that is recorded. */
export async function executeDestroy(reconcile: Reconcile, plan: DestroyPlan): Promise<Outcome> {
  const { context, item, object, logger, signal, unblocked } = reconcile;
  const { kind, engine, metrics } = context;
  const deletedBefore = unblocked?.deleted ?? 0;
  // Where that cannot be told, the destroy reports why.
  const emptied = plan.mayBeEmpty ? await forgetEmptied(reconcile).catch(() => undefined) : undefined;
  if (emptied !== undefined) {
    metrics.ran(emptied, "Deleting");
    return { type: "destroyed", plan, object, changes: emptied.changes, deletedBefore };
  }
  let progress: ProgressStatus | undefined;
  const latest = async (): Promise<LiveObject> => (await progress?.end().catch(() => undefined)) ?? object;
  let failures: UpdateFailure[];
  let deleted = deletedBefore;
  try {
    refuseFormerStack(kind, object);
    if (plan.finishUpdate && !(await finishUpdate(reconcile))) return { type: "stale" };
    if (!plan.progressReported) progress = reportDestroy(reconcile);
    const options = { release: plan.release, signal, savesOnce: findsWhatWasCutOff(kind) };
    const result = await engine.destroy(stackName(kind, item.key), options);
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
    await latest(); // a report that lands after the next reconcile's status would replace it
  }
  return { type: "destroyFailed", object: await latest(), failures, deleted };
}

function reportDestroy(reconcile: Reconcile): ProgressStatus {
  const { context, object } = reconcile;
  const { namespace, name, generation = 0 } = object.metadata;
  const place = namespace === undefined ? "" : ` from the namespace ${namespace}`;
  context.writer.event(object, "Normal", "Deleting", `Custom Resource ${name} is being deleted${place}`);
  return new ProgressStatus(reconcile, object, deletingConditions(generation, []), "late");
}

/**
 * Removes the stack's state when all that it still had is gone by now: a second destroy would do no more.
 *
 * @returns `undefined` when there is more
 */
async function forgetEmptied({ context, item, signal, unblocked }: Reconcile): Promise<UpdateResult | undefined> {
  const started = performance.now();
  if (unblocked === undefined || !(await unblocked.areGone(context))) return undefined;
  const { kind, engine } = context;
  const stack = stackName(kind, item.key);
  const recorded = await engine.recorded(stack, signal);
  if (!recorded?.every((urn) => isScaffolding(urn) || unblocked.urns.includes(urn))) return undefined;
  await engine.forget(stack, signal);
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
