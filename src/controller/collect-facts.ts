import type { LiveObject } from "../../providers/kubernetes/client";
import { isOrphanRecorded, type Settings } from "../../stacks/contract/annotations";
import { CodeEndedError } from "../../stacks/contract/code-ended";
import { type AnyKind, adoptsAfterCrash, kindName, parseServed, statusOf } from "../../stacks/contract/kind";
import {
  type CommonStatus,
  controllerReference,
  FINALIZER,
  objectId,
  objectKey,
  stackName,
} from "../../stacks/contract/object";
import { isFresh } from "../cache/freshness";
import { driftUnknownCondition } from "./conditions";
import type { KindContext, Reconcile } from "./context";
import { findDrift } from "./drift";
import type { DriftFacts, Facts, LastFacts, ObjectFacts, StackFacts, Timing } from "./facts";
import { stillWaits } from "./gate";
import { changedReads, ownedOf } from "./kind-cache";
import type { ObjectItem } from "./object-item";
import type { ObjectState } from "./object-state";

/** What a reconcile sees of its object, and what its last attempt waits for. */
interface ObservedObject extends Omit<Reconcile, "facts" | "logger" | "signal" | "stop" | "work" | "progress"> {
  /** See {@link ObjectFacts.isTombstone}. */
  isTombstone: boolean;
  /** See {@link Timing.blockedMs}. */
  blockedMs: number;
}

/**
 * What is known of an object when its reconcile begins: from the caches, from this process's own writes, and from the API
 * server where no cache is good enough. Changes nothing.
 *
 * @returns `undefined` when the object is gone, though a cache may still show it, or another one may have its name: the next
 *   event requeues that
 */
export async function collectFacts(
  context: KindContext,
  item: ObjectItem,
  state: ObjectState,
  signal: AbortSignal,
): Promise<Omit<Reconcile, "stop" | "work" | "progress"> | undefined> {
  const seen = await lookUp(context, item, state);
  if (seen === undefined) return undefined;
  const { namespace, name, generation } = seen.object.metadata;
  const logger = context.logger.child({ kind: kindName(context.kind), namespace, name, generation });
  return { ...seen, facts: await factsOf(seen), logger, signal };
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
  const seen = { context, item, object: shown, state, isTombstone, waiting, blockedMs };
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

async function factsOf(seen: ObservedObject): Promise<Facts> {
  const now = performance.now();
  const status = ownStatus(seen.context.kind, seen.object);
  const object = objectFacts(seen, status);
  return {
    object,
    settings: await settingsOf(seen, object),
    stack: stackFacts(seen, status),
    drift: await driftFacts(seen, status),
    last: lastFacts(seen, now),
    timing: timingOf(seen, now),
  };
}

/** An object's status, without the record of a stack that is not its own, such as that of an object that it was copied from. */
function ownStatus(kind: AnyKind, object: LiveObject): CommonStatus {
  const { stack, ...others } = statusOf(object);
  const isOwn = stack?.name === stackName(kind, objectKey(object.metadata));
  return { ...others, ...(isOwn && { stack }) };
}

function objectFacts({ object: { metadata }, state, isTombstone }: ObservedObject, status: CommonStatus): ObjectFacts {
  const { deletionTimestamp, finalizers = [] } = metadata;
  return {
    metadata: { generation: 0, ...metadata },
    status,
    isTombstone,
    hasFinalizer: finalizers.includes(FINALIZER),
    otherFinalizers: finalizers.filter((finalizer) => finalizer !== FINALIZER),
    orphaned: deletionTimestamp === undefined || isOrphanRecorded(metadata) ? undefined : state.orphaned,
  };
}

async function settingsOf(
  { context, object }: ObservedObject,
  { isTombstone, orphaned }: ObjectFacts,
): Promise<Settings> {
  const settings = await context.readSettings(object);
  // An object that is gone cannot be corrected.
  const isBeyondRepair = isTombstone && settings.problem !== undefined;
  return { ...settings, releases: settings.releases || orphaned !== undefined || isBeyondRepair };
}

function stackFacts({ context, item, object, state }: ObservedObject, { stack }: CommonStatus): StackFacts {
  const { backend, cache, kind, programDigest, rollout } = context;
  return {
    refusal: backend.refusal,
    unlisted: state.stackUnlisted,
    program: programDigest,
    rolledOut: rollout?.admits(item.key) ?? true,
    changedReads: changedReads(state.reads ?? stack ?? {}, object, cache.referenced),
    readsLive: kind.capabilities.liveState !== undefined,
    adopts: adoptsAfterCrash(kind),
    maintained: kind.capabilities.maintain !== undefined,
  };
}

async function driftFacts(seen: ObservedObject, { stack }: CommonStatus): Promise<DriftFacts> {
  const { context, object, state, blockedMs } = seen;
  const { polledDrift: polled, expectations, blockers, driftUnknown: unknown } = state;
  const former = [controllerReference(object)];
  const drift = findDrift(stack?.resources ?? [], expectations.applied, context.cache.view, former);
  const { edited, missing, unseen } = drift;
  let unanswered: CodeEndedError | undefined;
  const answered = async (work: Promise<string[]>): Promise<string[]> => {
    try {
      return await work;
    } catch (error) {
      if (!(error instanceof CodeEndedError)) throw error;
      unanswered = error;
      return [];
    }
  };
  /** What is not as it was applied, or lacking, by what the caches show. @param running what is taken to be running */
  const driftedOf = async (running: readonly string[]) => {
    const lacking = unseen.length > 0 ? [] : await answered(lackingOf(seen, running));
    return [...edited, ...missing, ...lacking, ...(polled === undefined ? [] : [POLLED_DRIFT])];
  };
  const { liveState, external } = context.kind.capabilities;
  const answeredAgain = liveState && external === undefined ? driftUnknownCondition(undefined) : undefined;
  const completed = await answered(completedOf(seen));
  const ids = await driftedOf([]);
  return {
    ...drift,
    ids: blockedMs > 0 ? ids.filter((id) => !blockers?.accountsFor(id)) : ids,
    polled,
    completed,
    lacksMore: completed.length > 0 && (await driftedOf(completed)).length > 0,
    ...(unanswered === undefined ? { unknown: unknown ?? answeredAgain } : unansweredFacts(unanswered)),
  };
}

function unansweredFacts(error: CodeEndedError): Pick<DriftFacts, "unknown" | "unansweredMs"> {
  return { unknown: driftUnknownCondition(error), unansweredMs: error.notBefore - performance.now() };
}

/** What has completed, as the kind says; a kind that throws must not keep its objects from their updates. */
async function completedOf(seen: ObservedObject): Promise<string[]> {
  const { kind, logger } = seen.context;
  try {
    return (await kind.capabilities.liveState?.completed?.(ownedOf(seen))) ?? [];
  } catch (error) {
    if (error instanceof CodeEndedError) throw error;
    logger.error({ err: error, kind: kindName(kind), object: seen.item.key }, "liveState.completed of the kind failed");
    return [];
  }
}

async function lackingOf(seen: ObservedObject, running: readonly string[]): Promise<string[]> {
  const { kind, cache } = seen.context;
  const { liveState } = kind.capabilities;
  if (liveState === undefined || statusOf(seen.object).stack === undefined) return [];
  try {
    const owned = asRunning(ownedOf(seen), running);
    return await liveState.needsReconcile(await parseServed(kind, seen.object), owned, cache.watched(seen.item.key));
  } catch (error) {
    if (error instanceof CodeEndedError) throw error;
    return []; // an update will say what is wrong with the object
  }
}

/** Shows what completed as if it had not, so that it is neither missed nor removed. */
export function asRunning(owned: LiveObject[], completed: readonly string[]): LiveObject[] {
  return owned.map((object) => (completed.includes(objectId(object)) ? { ...object, status: undefined } : object));
}

function lastFacts(seen: ObservedObject, now: number): LastFacts {
  const { context, object, state } = seen;
  const planned = context.plans?.get(context.kind, object)?.spec;
  return {
    attempt: state.lastAttempt,
    isRecorded: state.recorded === object.metadata.uid,
    preview: isValid(seen, now) ? state.lastPreview : undefined,
    planReason: planned?.object.generation === object.metadata.generation ? planned?.cause.reason : undefined,
  };
}

/** Whether the last preview may still be true. */
function isValid({ context, object, state: { lastPreview: last } }: ObservedObject, now: number): boolean {
  if (last === undefined || now >= last.untilMs) return false;
  return last.plan === undefined || stillWaits(context, object, last.plan);
}

function timingOf({ context, state, blockedMs }: ObservedObject, now: number): Timing {
  const { repairs, replacements, refreshes, lastPreview } = state;
  return {
    blockedMs,
    repairMs: repairs.notBefore - now,
    replacementMs: replacements.notBefore - now,
    conflictOverMs: repairs.conflictOverAt - now,
    previewedForMs: (lastPreview?.untilMs ?? Number.POSITIVE_INFINITY) - now,
    refreshMs: refreshes.dueMs(context.kind.capabilities.refreshEvery, now),
  };
}
