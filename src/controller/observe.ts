import type { LiveObject } from "../../providers/kubernetes/client";
import { isOrphanRecorded, obeyedAnnotations } from "../../stacks/contract/annotations";
import { type AnyKind, kindName, parseObject, statusOf } from "../../stacks/contract/kind";
import {
  type CommonStatus,
  controllerReference,
  FINALIZER,
  objectId,
  objectKey,
  stackName,
} from "../../stacks/contract/object";
import { isFresh } from "../cache/freshness";
import type { KindContext, Reconcile } from "./context";
import { type Drift, findDrift } from "./drift";
import type { Facts } from "./facts";
import { stillWaits } from "./gate";
import { ownedOf } from "./kind-cache";
import type { SetMode } from "./modes";
import type { ObjectItem } from "./object-item";
import type { ObjectState } from "./object-state";
import { changedReads } from "./program-reads";

/** The object of a reconcile, and what its last attempt waits for. */
interface ObservedObject extends Omit<Reconcile, "facts" | "logger" | "signal"> {
  /** See {@link Facts.isTombstone}. */
  isTombstone: boolean;
  /** See {@link Facts.blockedMs}. */
  blockedMs: number;
  setMode: SetMode;
}

/**
 * What is known of an object when its reconcile begins: from the caches, from this process's own writes, and from the API
 * server where no cache is good enough.
 *
 * @returns `undefined` when the object is gone, though a cache may still show it, or another one may have its name: the next
 *   event requeues that
 */
export async function observe(
  context: KindContext,
  item: ObjectItem,
  state: ObjectState,
  signal: AbortSignal,
): Promise<Reconcile | undefined> {
  const seen = await lookUp(context, item, state);
  if (seen === undefined) return undefined;
  const { namespace, name, generation } = seen.object.metadata;
  const logger = context.logger.child({ kind: kindName(context.kind), namespace, name, generation });
  return { ...seen, facts: factsOf(seen), logger, signal };
}

/** Names the drift that a poll found, among what has drifted. */
export const POLLED_DRIFT = "what was polled";

async function lookUp(context: KindContext, item: ObjectItem, state: ObjectState): Promise<ObservedObject | undefined> {
  const { cache, writer } = context;
  const cached = cache.object(item.key);
  const isTombstone = cached === undefined;
  const shown = isTombstone ? cache.tombstone(item.key) : state.writes.latest(cached);
  if (shown === undefined || isDestroyed(shown, state)) return undefined;
  const waiting = await state.blockers?.look(context, shown);
  const blockedMs = waiting?.remainingMs ?? 0;
  const unblocked = blockedMs === 0 ? state.blockers : undefined;
  const setMode = await context.modeOf(shown);
  const seen = { context, item, object: shown, state, unblocked, isTombstone, waiting, blockedMs, setMode };
  if (isTombstone) {
    const hasSuccessor = (await writer.read(shown)) !== undefined;
    return hasSuccessor ? undefined : seen;
  }
  if (shown.metadata.deletionTimestamp === undefined || blockedMs > 0) return seen;
  // A destroy must be of this very object.
  const live = await writer.current(shown, state.writes);
  return live !== undefined && isFresh(shown, live) ? { ...seen, object: live } : undefined;
}

/** Whether an object is shown as it was before its destroy, whose end has removed the finalizer. */
function isDestroyed({ metadata }: LiveObject, { destroyed }: ObjectState): boolean {
  return metadata.uid === destroyed && metadata.finalizers?.includes(FINALIZER) === true;
}

/** An object's status, without the record of a stack that is not its own, such as that of an object that it was copied from. */
function ownStatus(kind: AnyKind, object: LiveObject): CommonStatus {
  const { stack, ...others } = statusOf(object);
  const isOwn = stack?.name === stackName(kind, objectKey(object.metadata));
  return { ...others, ...(isOwn && { stack }) };
}

function factsOf(seen: ObservedObject): Facts {
  const { context, object, state, unblocked, isTombstone, blockedMs, setMode } = seen;
  const { cache, kind, programDigest } = context;
  const { deletionTimestamp, finalizers = [] } = object.metadata;
  const obeyed = obeyedAnnotations(object);
  const problem = obeyed.problem ?? setMode.problem;
  const orphaned = state.orphaned && deletionTimestamp !== undefined && !isOrphanRecorded(object.metadata);
  const status = ownStatus(kind, object);
  const drift = findDrift(status.stack?.resources ?? [], state.expectations.applied, cache.view, [
    controllerReference(object),
  ]);
  const completed = completedOf(seen);
  const drifted = driftedOf(seen, drift, []);
  const now = performance.now();
  const { repairs, replacements } = state;
  const { refreshEvery } = kind.capabilities;
  const planned = context.plans?.get(kind, object)?.spec;
  return {
    metadata: { generation: 0, ...object.metadata },
    status,
    isTombstone,
    hasFinalizer: finalizers.includes(FINALIZER),
    otherFinalizers: finalizers.filter((finalizer) => finalizer !== FINALIZER),
    paused: obeyed.paused || problem !== undefined,
    annotationProblem: problem,
    mode: setMode.mode,
    requested: obeyed.requested,
    stateDecision: obeyed.stateDecision,
    stackUnlisted: state.stackUnlisted,
    ignoreFields: obeyed.ignoreFields,
    // An object that is gone cannot be corrected.
    releases: obeyed.releases || orphaned || (isTombstone && problem !== undefined),
    orphaned,
    readsLive: kind.capabilities.liveState !== undefined,
    maintained: kind.capabilities.maintain !== undefined,
    changedReads: changedReads(state.reads ?? status.stack ?? {}, object, cache.referenced),
    programDigest,
    drift,
    drifted: blockedMs > 0 ? drifted.filter((id) => !state.blockers?.accountsFor(id)) : drifted,
    polledDrift: state.polledDrift,
    completed,
    lacksMore: completed.length > 0 && driftedOf(seen, drift, completed).length > 0,
    lastAttempt: state.lastAttempt,
    lastComparison: isValid(seen, now) ? state.lastComparison : undefined,
    comparedForMs: (state.lastComparison?.untilMs ?? Number.POSITIVE_INFINITY) - now,
    blockedMs,
    unblocked: unblocked !== undefined,
    backoff: {
      repairMs: repairs.notBefore - now,
      replacementMs: replacements.notBefore - now,
      conflictOverMs: repairs.conflictOverAt - now,
    },
    driftUnknown: state.driftUnknown,
    refreshMs: state.refreshes.dueMs(refreshEvery, now),
    rolledOut: context.rollout?.admits(seen.item.key) ?? true,
    planReason: planned?.object.generation === object.metadata.generation ? planned?.cause.reason : undefined,
  };
}

/** Whether the last comparison may still be true. */
function isValid({ context, object, state: { lastComparison: last } }: ObservedObject, now: number): boolean {
  if (last === undefined || now >= last.untilMs) return false;
  return last.plan === undefined || stillWaits(context, object, last.plan);
}

/** What has completed, as the kind says; a kind that throws must not keep its objects from their updates. */
function completedOf(seen: ObservedObject): string[] {
  const { kind, logger } = seen.context;
  try {
    return kind.capabilities.liveState?.completed?.(ownedOf(seen)) ?? [];
  } catch (error) {
    logger.error({ err: error, kind: kindName(kind), object: seen.item.key }, "liveState.completed of the kind failed");
    return [];
  }
}

/** What is not as it was applied, or lacking, by what the caches show. @param completed what is taken to be running */
function driftedOf(seen: ObservedObject, { edited, missing, unseen }: Drift, completed: readonly string[]): string[] {
  const lacking = unseen.length > 0 ? [] : lackingOf(seen, completed);
  return [...edited, ...missing, ...lacking, ...(seen.state.polledDrift === undefined ? [] : [POLLED_DRIFT])];
}

function lackingOf(seen: ObservedObject, completed: readonly string[]): string[] {
  const { kind, cache } = seen.context;
  const { liveState } = kind.capabilities;
  if (liveState === undefined || statusOf(seen.object).stack === undefined) return [];
  try {
    const owned = asRunning(ownedOf(seen), completed);
    return liveState.needsReconcile(parseObject(kind, seen.object), owned, cache.watched(seen.item.key));
  } catch {
    return []; // an update will say what is wrong with the object
  }
}

/** Shows what completed as if it had not, so that it is neither missed nor removed. */
export function asRunning(owned: LiveObject[], completed: readonly string[]): LiveObject[] {
  return owned.map((object) => (completed.includes(objectId(object)) ? { ...object, status: undefined } : object));
}
