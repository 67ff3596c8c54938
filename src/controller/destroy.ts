import { describeDeleted } from "../automation/event-log";
import type { UpdateFailure } from "../automation/failures";
import type { DestroyAction } from "./action";
import { deletingConditions } from "./conditions";
import { isOutdated, loggedFailure, type Reconcile, type Step } from "./context";
import { passGate } from "./gate";
import type { Outcome } from "./outcome";
import { ProgressStatus } from "./progress-status";
import { removeAfterDestroy } from "./remove-untracked";
import type { ObjectStack } from "./stack";

/** Destroys what an object's stack has. The finalizer is removed when that is recorded. */
export async function executeDestroy(
  reconcile: Reconcile,
  stack: ObjectStack,
  action: DestroyAction,
): Promise<Outcome> {
  const { context, object, state, logger, signal } = reconcile;
  const { release } = action;
  const progress = new ProgressStatus(reconcile);
  let failures: UpdateFailure[];
  let deleted = state.blockers?.deleted ?? [];
  try {
    const pass = await passGate(reconcile, action, () => stack.planDestroy(release));
    if (pass.type === "failed") return { type: "destroyFailed", object, failures: pass.failures, deleted };
    if (pass.type !== "pass") return pass;
    if (!action.progressReported) await reportDestroy(reconcile, progress);
    state.lastComparison = undefined; // what is deleted makes it untrue
    const result = await stack.destroy(release, pass);
    context.metrics.ran(result, "Deleting");
    if (result.interrupted) return { type: "stale" };
    const { resourceChanges: changes } = result.summary;
    deleted = [...deleted, ...describeDeleted(result)];
    if (result.summary.result === "succeeded") {
      const isAll = await removeAfterDestroy(reconcile, action, result, pass.bound?.untracked);
      if (!isAll) return { type: "stale" };
      return { type: "destroyed", action, object: await progress.end(), changes, deleted, pass };
    }
    failures = result.failures;
  } catch (error) {
    if (isOutdated(error) || signal.aborted) return { type: "stale" };
    failures = [loggedFailure(error, logger)];
  } finally {
    await progress.end();
  }
  return { type: "destroyFailed", object: await progress.end(), failures, deleted };
}

function reportDestroy({ context, object }: Step<"object", "writer">, progress: ProgressStatus): Promise<void> {
  const { namespace, name } = object.metadata;
  const place = namespace === undefined ? "" : ` from the namespace ${namespace}`;
  context.writer.event(object, "Normal", "Deleting", `Custom Resource ${name} is being deleted${place}`);
  return progress.begin(deletingConditions([]), "late");
}
