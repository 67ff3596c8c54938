import { setTimeout as delay } from "node:timers/promises";
import type { LiveObject } from "../../providers/kubernetes/client";
import { isObjectOutputs } from "../../providers/kubernetes/object";
import { parseObject, statusOf } from "../../stacks/contract/kind";
import { objectId, RECONCILE_ANNOTATION, type StackRecord } from "../../stacks/contract/object";
import type { UpdateFailure, UpdateResult } from "../automation/engine";
import type { StackResource } from "../automation/event-log";
import { isAsShown } from "../cache/freshness";
import { Pending } from "./blocked";
import {
  describeChanges,
  describeFailures,
  failedConditions,
  isTerminal,
  isWaiting,
  succeededConditions,
  updatingConditions,
} from "./conditions";
import { failureOf, isOutdated, loggerOf, type Outcome, retryAfter, type Turn, writeStatus } from "./context";
import type { Attempt, Cause } from "./decide";
import { type Drift, findDrift } from "./drift";
import { TEND_INTERVAL_MS } from "./maintain";
import { prepareProgram } from "./object-program";
import { mayHaveStrays, removeStrays } from "./orphans";
import { type Announcement, announce } from "./progress";
import { reportContest, watchContest } from "./repair";

/** An update, and what led to it. */
export interface Plan {
  cause: Cause;
  refresh: boolean;
  drift: Drift;
  /** What it is to repair. */
  drifted: readonly string[];
  /** Of that, what ended by itself. */
  ended: readonly string[];
  /** Of that, what is not to be replaced yet: all of it, or nothing. */
  waiting: readonly string[];
}

/** How long a cache that is behind is waited for; when it needs longer, an event of it leads here again. */
const CATCH_UP_MS = 250;

/** Brings the object's stack in line with the object, and writes down what came of it. */
export async function updateObject(
  turn: Turn,
  { cause, refresh, drift, drifted, ended, waiting }: Plan,
): Promise<Outcome> {
  const { context, key, object: found, memory, signal } = turn;
  const { kind, recorder, observe, stacks, writer } = context;
  const { generation = 0, annotations } = found.metadata;
  const logger = loggerOf(turn).child({ cause });
  const requested = annotations?.[RECONCILE_ANNOTATION];
  const handled = {
    observedGeneration: generation,
    ...(requested !== undefined && { lastHandledReconcile: requested }),
  };
  const observed = context.observed(key);
  const { reconsidered } = memory;
  let object = found;
  let announcement: Announcement | undefined;
  let takeBack = () => {};
  let failures: UpdateFailure[];
  let record: StackRecord | undefined;
  const strays = mayHaveStrays(found, memory.lastAttempt);
  try {
    const parsed = parseObject(kind, found);
    const program = await prepareProgram(turn, parsed, waiting);
    const onlyShort = cause === "Repairing" && drift.edited.length + drift.missing.length === 0 && !memory.drifted;
    // Nothing is short but in a cache that is behind; the event that is still to come leads here again.
    if (onlyShort && kind.shortfall?.(parsed, program.owned, program.observed).length === 0) return "done";
    if (ended.length > waiting.length) memory.replacements.count(performance.now());
    const conflicts = program.takeClaims();
    takeBack = stacks.expect(key, found);
    object = await writer.hold(found, memory, stacks.placeOf(found));
    // Of those that share a stack and needed no write, it is asked for all of an update at once.
    const isCurrent = object !== found || context.sharing === undefined;
    const live = object === found && isCurrent ? await writer.read(found) : object;
    if (!isAsShown(found, live)) return "retry";
    announcement = announceUpdate(turn, object, cause);
    const contest = cause === "Repairing" ? await watchContest(turn, drift) : undefined;
    const result = await stacks.up(key, found, program.of(object), { refresh, signal, isCurrent });
    observe(result, cause);
    if (result.outcome === "interrupted") return "retry";
    failures = [...result.failures, ...conflicts];
    if (failures.length > 0) record = recordOfRest(turn, result);
    if (record !== undefined) program.settleClaims();
    if (result.outcome === "succeeded" && conflicts.length === 0) {
      if (strays) await removeStrays(turn, result.resources, { release: false });
      memory.drifted = false;
      memory.learn(result);
      memory.lastAttempt = attemptOf(turn, "succeeded", drifted);
      program.settleClaims();
      record = recordOf(turn, result);
      await catchUp(turn, record);
      const written = await writeStatus(turn, await announcement.over(), {
        ...handled,
        conditions: succeededConditions(generation),
        stack: record,
      });
      const changes = describeChanges(result.changes);
      logger.info({ changes: result.changes, durationMs: Math.round(result.durationMs) }, "updated");
      if (changes !== "") recorder.event(object, "Normal", cause === "Repairing" ? "Repaired" : "Updated", changes);
      if (contest !== undefined) return reportContest(turn, written, contest, result);
      // What a predecessor has made is not tended to, nor found to be one too many, before this record of it, and no
      // event of it comes any more.
      const mayHaveSurplus = strays && kind.shortfall !== undefined;
      const needsAnotherLook = kind.tend !== undefined || mayHaveSurplus || waiting.length > 0;
      return needsAnotherLook ? { afterMs: TEND_INTERVAL_MS } : "done";
    }
  } catch (error) {
    if (isOutdated(error) || signal.aborted) return "retry";
    failures = [failureOf(error, logger)];
  } finally {
    takeBack();
    announcement?.cancel();
  }
  if (!isSameAs(observed, context.observed(key)) || memory.reconsidered !== reconsidered) {
    logger.info({ failures }, "update failed for objects that have changed meanwhile");
    return "retry";
  }
  const refused = failures.filter(({ errorClass }) => errorClass !== "pending");
  const outcome = isWaiting(failures) ? "pending" : isTerminal(failures) ? "terminal" : "retryable";
  memory.pending = outcome === "pending" ? new Pending(turn, failures) : undefined;
  memory.lastAttempt = attemptOf(
    turn,
    outcome,
    drifted.filter((id) => !memory.pending?.covers(id)),
  );
  for (const { reason, object: about } of refused) {
    if (reason === "Conflict" && about) context.claims.await(objectId(about), context.queueKey(key));
  }
  if (refused.length > 0) {
    logger.warn(
      { failures },
      outcome === "terminal" ? "update failed, waits for the object to change" : "update failed",
    );
    recorder.event(object, "Warning", refused[0]?.reason ?? "UpdateFailed", describeFailures(refused));
  } else {
    logger.info({ failures }, "update waits for something else to end");
  }
  const latest = (await announcement?.over().catch(() => undefined)) ?? object;
  await writeStatus(turn, latest, {
    ...handled,
    conditions: failedConditions(generation, failures),
    ...(record && { stack: record }),
  });
  if (memory.pending !== undefined) return { afterMs: await memory.pending.holdsForMs(turn) };
  return outcome === "terminal" ? "done" : retryAfter(turn, refused);
}

/**
 * The status says what is going on while the engine starts, which costs no time of its own. In a stack that many share
 * it would cost a write for each of them; there it can wait where the object itself shows that an update was begun and
 * not ended.
 */
function announceUpdate(turn: Turn, object: LiveObject, cause: Cause): Announcement {
  const knownReady = statusOf(object).stack !== undefined;
  const conditions = updatingConditions(object.metadata.generation ?? 0, cause, knownReady);
  const mayWait = turn.context.sharing !== undefined && (cause === "Creating" || cause === "Updating");
  return announce(turn, object, conditions, { mayWait });
}

/** Waits for the caches to show what we have just applied, so that a status of what is alive is not of the past. */
async function catchUp({ context, memory }: Turn, { resources = [] }: StackRecord): Promise<void> {
  const deadline = performance.now() + CATCH_UP_MS;
  while (findDrift(resources, memory.applied, context.view).unseen.length > 0 && performance.now() < deadline) {
    await delay(5);
  }
}

function recordOf({ context, key, object }: Turn, { resources }: UpdateResult): StackRecord {
  const { program, view, stacks } = context;
  const watched = resources
    .flatMap(({ outputs }) => (isObjectOutputs(outputs) ? [outputs] : []))
    .map(({ manifest, fields }) => ({ id: objectId(manifest), fields }))
    .filter(({ id }) => view(id) !== undefined)
    .sort((a, b) => (a.id < b.id ? -1 : 1));
  return { name: stacks.nameOf(key, object), program, ...(watched.length > 0 && { resources: watched }) };
}

/**
 * What is in an object's own stack after an update that did all but what failed: what it made is watched for drift as
 * well. Not known before the first success, nor for stacks that are shared.
 */
function recordOfRest(turn: Turn, result: UpdateResult): StackRecord | undefined {
  const before = statusOf(turn.object).stack;
  if (result.restDone !== true || before === undefined || turn.context.sharing !== undefined) return undefined;
  turn.memory.learn(result);
  const { resources: done = [] } = recordOf(turn, result);
  const settled = new Set([...done.map(({ id }) => id), ...result.deleted.flatMap(({ outputs }) => idsOf(outputs))]);
  const left = (before.resources ?? []).filter(({ id }) => !settled.has(id));
  return { ...before, resources: [...done, ...left].sort((a, b) => (a.id < b.id ? -1 : 1)) };
}

function idsOf(outputs: StackResource["outputs"]): string[] {
  return isObjectOutputs(outputs) ? [objectId(outputs.manifest)] : [];
}

function attemptOf(
  { context, object: { metadata } }: Turn,
  outcome: Attempt["outcome"],
  drifted: readonly string[],
): Attempt {
  const { uid, generation = 0 } = metadata;
  return { uid, generation, program: context.program, outcome, drift: drifted.join() };
}

/** Whether the same objects are there as before, and none of them has begun to be deleted. */
function isSameAs(before: readonly LiveObject[], after: readonly LiveObject[]): boolean {
  const names = (objects: readonly LiveObject[]) =>
    objects.map(({ metadata }) => `${metadata.uid} ${metadata.deletionTimestamp ?? ""}`).sort();
  return names(before).join() === names(after).join();
}
