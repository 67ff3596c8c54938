import type { LiveObject } from "../../providers/kubernetes/client";
import { findCondition } from "../../stacks/contract/condition";
import { parseObject, statusOf } from "../../stacks/contract/kind";
import { type CommonStatus, DELETION_POLICY_ANNOTATION } from "../../stacks/contract/object";
import type { UpdateFailure, UpdateResult } from "../automation/engine";
import { isAsShown } from "../cache/freshness";
import { Pending, writePending } from "./blocked";
import { deletingConditions, describeChanges, describeFailures, isUnfinished } from "./conditions";
import { failureOf, isOutdated, loggerOf, type Outcome, retryAfter, type Turn, writeStatus } from "./context";
import { prepareProgram } from "./object-program";
import { mayHaveStrays, removeStrays } from "./orphans";
import { announce } from "./progress";

/**
 * Destroys what the object's stack has made of it, and lets go of the object.
 *
 * @param pending what the last destroy waited for, where that has changed
 * @returns "gone" when that is done
 */
export async function destroyObject(turn: Turn, pending: Pending | undefined): Promise<Outcome | "gone"> {
  const { context, key, object: found, memory, signal } = turn;
  const { observe, recorder, stacks, writer } = context;
  const { generation = 0, namespace, name, annotations } = found.metadata;
  const logger = loggerOf(turn);
  // The cache may be behind; a destroy must be of this very object. Of those that share a stack, that is asked at its turn.
  const live = context.sharing === undefined ? await writer.read(found) : found;
  if (live === undefined || !isAsShown(found, live)) return "done";
  const release = annotations?.[DELETION_POLICY_ANNOTATION] === "Orphan";
  const strays = mayHaveStrays(live, memory.lastAttempt);
  let deleted = pending?.deleted ?? 0;
  const started = performance.now();
  if (pending !== undefined && !strays && (await isEmptied(turn, pending))) {
    const changes = { delete: pending.failures.length };
    const durationMs = performance.now() - started;
    const nothing = { resources: [], deleted: [], failures: [] };
    observe({ operation: "destroy", outcome: "succeeded", changes, ...nothing, durationMs }, "Deleting");
    logger.info({ changes }, "destroyed");
    recorder.event(live, "Normal", "Deleted", describeChanges({ delete: deleted + changes.delete }));
    return letGo(turn, live);
  }
  if (wasCutOff(turn, live)) {
    const outcome = await finishUpdate({ ...turn, object: live });
    if (outcome === "interrupted") return "retry";
  }
  const isRepeated = findCondition(statusOf(live).conditions, "Reconciling")?.reason === "Deleting";
  if (!isRepeated) {
    const place = namespace === undefined ? "" : ` from the namespace ${namespace}`;
    recorder.event(live, "Normal", "Deleting", `Custom Resource ${name} is being deleted${place}`);
  }
  const mayWait = context.sharing !== undefined;
  const announcement = isRepeated
    ? undefined
    : announce(turn, live, deletingConditions(live.metadata.generation ?? 0, []), { mayWait });
  const announced = async () => (await announcement?.over().catch(() => undefined)) ?? live;
  let failures: UpdateFailure[];
  try {
    const result = await stacks.destroy(key, live, { signal, release });
    observe(result, "Deleting");
    if (result.outcome === "interrupted") return "retry";
    failures = result.failures;
    deleted += result.changes.delete ?? 0;
    if (result.outcome === "succeeded") {
      const object = await announced();
      if (strays) await removeStrays(turn, [], { release });
      logger.info({ changes: result.changes, release, durationMs: Math.round(result.durationMs) }, "destroyed");
      const changes = { ...result.changes, ...(deleted > 0 && { delete: deleted }) };
      const told = release ? "what was made is left" : describeChanges(changes) || "nothing was left to delete";
      recorder.event(object, "Normal", release ? "Orphaned" : "Deleted", told);
      return letGo(turn, object);
    }
  } catch (error) {
    if (isOutdated(error) || signal.aborted) return "retry";
    failures = [failureOf(error, logger)];
  } finally {
    announcement?.cancel();
  }
  const object = await announced();
  if (failures.every(({ errorClass }) => errorClass === "pending")) {
    logger.info({ failures }, "destroy waits for something else to end");
    memory.pending = new Pending(turn, failures, deleted);
    await writePending(turn, object, failures);
    return { afterMs: await memory.pending.holdsForMs(turn) };
  }
  logger.warn({ failures }, "destroy failed, the object stays");
  recorder.event(object, "Warning", "DeletionFailed", describeFailures(failures));
  await writeStatus(turn, object, { conditions: deletingConditions(generation, failures) });
  return retryAfter(turn, failures);
}

async function letGo({ context, object: { metadata }, memory }: Turn, object: LiveObject): Promise<"gone"> {
  context.claims.settle(metadata.uid, []);
  await context.writer.letGo(object, memory);
  return "gone";
}

/** Whether all that the stack still had is gone by now; its state is then removed as well. */
async function isEmptied(turn: Turn, pending: Pending): Promise<boolean> {
  const { context, key, signal } = turn;
  if (!(await pending.isOver(turn))) return false;
  const urns = pending.failures.map(({ urn }) => urn);
  return context.stacks.forgetEmptied(key, urns, signal);
}

/**
 * Whether an update of the object may have been cut off, so that what it made is not known. A deletion makes a new
 * generation; if there is another one besides since the last update that ended, that one's may have been under way.
 */
function wasCutOff({ context }: Turn, { metadata, status }: LiveObject): boolean {
  const { conditions, observedGeneration } = (status as CommonStatus | undefined) ?? {};
  if (isUnfinished(conditions)) return true;
  if (context.sharing === undefined) return false;
  return observedGeneration === undefined || (metadata.generation ?? 0) - observedGeneration > 1;
}

/**
 * Before a destroy: an update of which nobody saw the end may have made what the state does not show and a destroy
 * would leave behind. The same update once more adopts that. When it fails, what the state has is destroyed all the
 * same: an object that can never be updated can still be deleted.
 */
async function finishUpdate(turn: Turn): Promise<UpdateResult["outcome"]> {
  const { context, key, object: found, memory, signal } = turn;
  const { kind, observe, stacks, writer } = context;
  try {
    const program = await prepareProgram(turn, parseObject(kind, found));
    program.takeClaims();
    const object = await writer.hold(found, memory, stacks.placeOf(found));
    const result = await stacks.up(key, found, program.of(object), { signal });
    observe(result, "Retrying");
    return result.outcome;
  } catch (error) {
    loggerOf(turn).info({ err: error }, "the last update could not be finished before the object is destroyed");
    return "failed";
  }
}
