import { adoptsAfterCrash } from "../../stacks/contract/kind";
import { objectId, stackName } from "../../stacks/contract/object";
import type { OpMap, UpResult } from "../automation/engine";
import type { UpdateFailure } from "../automation/failures";
import { urnsIn } from "../automation/stack-state";
import { isScaffolding } from "../automation/urn";
import { planDestroy } from "../plan/plan";
import type { DestroyAction } from "./action";
import { deletingConditions } from "./conditions";
import { isOutdated, loggedFailure, type Reconcile } from "./context";
import { OPEN, type Pass, passGate } from "./gate";
import { objectForDestroy } from "./missing-state";
import type { Outcome } from "./outcome";
import { ProgressStatus } from "./progress-status";
import {
  findMarked,
  removeDeletedWith,
  removeExternal,
  removeMarked,
  removePlannedUntracked,
  removeUntracked,
} from "./untracked";
import { planRequest } from "./view";

/** Destroys what an object's stack has. The finalizer is removed when that is recorded. */
export async function executeDestroy(reconcile: Reconcile, action: DestroyAction): Promise<Outcome> {
  const { object, logger, signal, unblocked } = reconcile;
  // Where that cannot be told, the destroy reports why.
  const emptied = action.mayBeEmpty ? await removeEmptied(reconcile).catch(() => undefined) : undefined;
  let deletedBefore = unblocked?.deleted ?? 0;
  if (emptied !== undefined && findMarked(reconcile, []).every(isEnding)) {
    return { type: "destroyed", action, object, changes: emptied, deletedBefore, pass: OPEN };
  }
  deletedBefore += emptied?.delete ?? 0;
  const progress = new ProgressStatus(reconcile);
  let failures: UpdateFailure[];
  let deleted = deletedBefore;
  try {
    const { release } = action;
    const pass = await passGate(reconcile, action, () =>
      planDestroy({
        ...planRequest(reconcile, objectForDestroy(reconcile, release, true)),
        ...{ release, refresh: false, binds: true },
      }),
    );
    if (pass.type === "failed") return { type: "destroyFailed", object, failures: pass.failures, deleted };
    if (pass.type !== "pass") return pass;
    if (!action.progressReported) await reportDestroy(reconcile, progress);
    reconcile.state.lastComparison = undefined; // what is deleted makes it untrue
    const result = await destroyStack(reconcile, action, pass);
    if (result.interrupted) return { type: "stale" };
    const { resourceChanges: changes } = result.summary;
    deleted += changes.delete ?? 0;
    if (result.summary.result === "succeeded") {
      const isAll = await removeRest(reconcile, action, result, pass);
      if (!isAll) return { type: "stale" };
      return { type: "destroyed", action, object: await progress.end(), changes, deletedBefore, pass };
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

async function destroyStack(
  reconcile: Reconcile,
  { release }: DestroyAction,
  { options: held, untracked }: Pass,
): Promise<UpResult> {
  const { context, item, signal } = reconcile;
  const { kind, engine, metrics } = context;
  const object = objectForDestroy(reconcile, release, untracked !== undefined);
  const options = { release, signal, savesOnce: adoptsAfterCrash(kind), ...held };
  const result = await engine.destroy(stackName(kind, item.key), { ...options, object });
  metrics.ran(result, "Deleting");
  return result;
}

/**
 * Removes what a destroy did not find in the state: with a plan, only what that has.
 *
 * @returns whether nothing is left that needs another plan
 */
async function removeRest(
  reconcile: Reconcile,
  { release, mayHaveUntracked }: DestroyAction,
  result: UpResult,
  { untracked }: Pass,
): Promise<boolean> {
  const { client } = reconcile.context;
  const isPlanned = untracked !== undefined;
  if (isPlanned) await removePlannedUntracked(reconcile, untracked, { isGone: true });
  else if (!release) await removeDeletedWith(reconcile);
  // A state that had nothing proves nothing.
  const isProven = result.found && (result.summary.resourceChanges.delete ?? 0) > 0;
  if (!isPlanned && (mayHaveUntracked || !result.found)) await removeUntracked(reconcile, [], { release });
  else if (!isPlanned && !isProven) await removeExternal(reconcile, [], { release });
  else if (!result.found) await removeExternal(reconcile, [], { release: true }); // what is in no plan is not deleted
  const marked = findMarked(reconcile, result.deleted).filter((object) => !isProven || !isEnding(object));
  const planned = new Set(untracked?.map(objectId));
  const isUnplanned = isPlanned && !release && marked.some((one) => !isEnding(one) && !planned.has(objectId(one)));
  if (!isUnplanned) await removeMarked(client, marked, { release });
  return !isUnplanned;
}

function isEnding({ metadata }: { metadata: { deletionTimestamp?: string } }): boolean {
  return metadata.deletionTimestamp !== undefined;
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
async function removeEmptied({ context, item, object, signal, unblocked }: Reconcile): Promise<OpMap | undefined> {
  if (unblocked === undefined || !(await unblocked.areGone(context))) return undefined;
  const { kind, engine, metrics } = context;
  const stack = stackName(kind, item.key);
  const startTime = new Date();
  const state = await engine.exportStack(stack, signal);
  const isEmptied = state && urnsIn(state).every((urn) => isScaffolding(urn) || unblocked.urns.includes(urn));
  if (!isEmptied) return undefined;
  await engine.removeStack(stack, { signal, object: object.metadata });
  const resourceChanges = { delete: unblocked.urns.length };
  const summary = { kind: "destroy", startTime, endTime: new Date(), result: "succeeded", resourceChanges } as const;
  metrics.ran({ summary, interrupted: false, failures: [] }, "Deleting");
  return resourceChanges;
}
