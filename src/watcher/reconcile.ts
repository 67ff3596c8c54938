import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import { errorClassOf, errorMessageOf, errorReasonOf, TerminalError } from "../../providers/errors";
import {
  ApiError,
  type KubernetesClient,
  type LiveObject,
  type Manifest,
  type ResourceType,
} from "../../providers/kubernetes/client";
import { isObjectOutputs, removeStray } from "../../providers/kubernetes/object";
import { ownerUidOf } from "../../providers/kubernetes/ownership";
import { findCondition, type NewCondition } from "../../stacks/contract/condition";
import { type AnyKind, kindName, ownerDescription, parseObject, statusOf } from "../../stacks/contract/kind";
import {
  type CommonStatus,
  DELETION_POLICY_ANNOTATION,
  type KindObject,
  objectId,
  PAUSED_ANNOTATION,
  RECONCILE_ANNOTATION,
  type StackRecord,
} from "../../stacks/contract/object";
import type { StackEngine, UpdateFailure, UpdateResult } from "../automation/engine";
import type { StackResource } from "../automation/event-log";
import { Announcement } from "./announcement";
import type { Claims } from "./claims";
import {
  backOffConditions,
  contestedConditions,
  deletingConditions,
  describeChanges,
  describeFailures,
  failedConditions,
  isTerminal,
  isUnfinished,
  pausedConditions,
  resumedConditions,
  succeededConditions,
  updatingConditions,
} from "./conditions";
import { type Contest, describeContest } from "./contest";
import { type Attempt, type Cause, decide } from "./decide";
import { type Drift, findDrift, type OwnedView } from "./drift";
import { FINALIZER } from "./identity";
import { Memory } from "./memory";
import { ObjectStacks, type Sharing } from "./object-stack";
import { ObjectWriter } from "./object-writer";
import type { EventRecorder } from "./recorder";
import type { StatusChange } from "./status";
import { findStrays, mayHaveStrays } from "./strays";
import { readSurroundings, type Surroundings } from "./surroundings";

export { FINALIZER };

/** What a worker asks of the queue when it is done: nothing, another turn with back-off, or one after a time. */
export type Outcome = "done" | "retry" | { afterMs: number };

/** What one kind's reconciler works with. */
export interface ReconcilerOptions {
  kind: AnyKind;
  type: ResourceType;
  /** The digest of the kind's program. */
  program: string;
  client: KubernetesClient;
  engine: Pick<StackEngine, "up" | "destroy">;
  /** For a kind whose objects share stacks. */
  sharing?: Sharing;
  claims: Claims;
  recorder: EventRecorder;
  logger: Logger;
  /** The cached object of a key. */
  cached(key: string): LiveObject | undefined;
  /** The queue's name for a key of this kind. */
  queueKey(key: string): string;
  /** The cached objects that are labelled as owned by this UID. */
  owned(uid: string): LiveObject[];
  /** The cached objects that the kind observes for a key. */
  observed(key: string): LiveObject[];
  /** What the caches show of an owned object, by its id; `undefined` when its type is not watched. */
  view(id: string): OwnedView | undefined;
  /** How to call the object of this UID in a message; `undefined` when there is none. */
  describeOwner(uid: string): string | undefined;
  /** Told of every update that ran. */
  observe(result: UpdateResult, cause: Cause | "Deleting"): void;
}

/** An update, and what led to it. */
interface Plan {
  cause: Cause;
  refresh: boolean;
  drift: Drift;
  /** What it is to repair, joined. */
  wanting: string;
  /** Of that, what ended by itself. */
  ended: readonly string[];
  /** Of that, what is not to be replaced yet: all of it, or nothing. */
  waiting: readonly string[];
}

/** An update in a stack that others share is announced only if it takes longer than this. */
const ANNOUNCE_AFTER_MS = 10_000;
/** An object is tended to so often at most: a burst of changes is answered as a whole. */
const TEND_INTERVAL_MS = 200;
const TEND_RETRY_MS = 5_000;
/** How long a cache that is behind is waited for; when it needs longer, an event of it leads here again. */
const CATCH_UP_MS = 250;

/**
 * Brings the stack of one object in line with the object: from the queue's name to the engine, and back to the status.
 *
 * Level-based: it reads the present state, decides what that calls for ({@link decide}), does it, and writes down what
 * came of it. The same call for an object that needs nothing reads two caches and writes nothing.
 */
export class Reconciler {
  readonly #options: ReconcilerOptions;
  readonly #stacks: ObjectStacks;
  readonly #writer: ObjectWriter;
  readonly #memories = new Map<string, Memory>();

  constructor(options: ReconcilerOptions) {
    const { kind, type, client, engine, sharing } = options;
    this.#options = options;
    this.#stacks = new ObjectStacks(kind, engine, sharing);
    this.#writer = new ObjectWriter({ kind, type, client, owned: (object, memory) => this.#owned(object, memory) });
  }

  async reconcile(key: string, signal: AbortSignal): Promise<Outcome> {
    const { kind, program, cached, view } = this.#options;
    const shown = cached(key);
    if (shown === undefined) {
      this.#memories.delete(key);
      return "done";
    }
    const memory = this.#memory(key);
    const object = memory.newest(shown);
    const { annotations = {}, finalizers = [] } = object.metadata;
    const status = statusOf(object);
    const drift = findDrift(status.stack?.resources ?? [], memory.applied, view);
    const wanting = this.#wanting(key, object, memory, drift);
    const action = decide({
      metadata: { generation: 0, ...object.metadata },
      finalized: finalizers.includes(FINALIZER),
      paused: annotations[PAUSED_ANNOTATION] === "true",
      requested: annotations[RECONCILE_ANNOTATION],
      status,
      program,
      drifted: wanting,
      lastAttempt: memory.lastAttempt,
    });
    const tendAfterMs = action.type === "none" || action.type === "up" ? await this.#tend(object, memory) : 0;
    switch (action.type) {
      case "none":
        return orAfter(await this.#rest(object, memory), tendAfterMs);
      case "pause":
        await this.#write(object, memory, { conditions: pausedConditions(object.metadata.generation ?? 0) });
        return "done";
      case "destroy":
        return this.#destroy(key, object, memory, signal);
      case "up": {
        const ended = action.cause === "Repairing" ? (kind.ended?.(this.#owned(object, memory)) ?? []) : [];
        let waiting: readonly string[] = [];
        if (action.cause === "Repairing") {
          const waitMs = await this.#backOff(object, memory, ended);
          if (waitMs > 0) {
            const isContested = memory.repairs.notBefore > performance.now();
            const lacksMore = !isContested && this.#wanting(key, object, memory, drift, ended).length > 0;
            if (!lacksMore) return { afterMs: waitMs };
            waiting = ended;
          }
        }
        const plan = { ...action, drift, wanting: wanting.join(), ended, waiting };
        return orAfter(await this.#update(key, object, memory, plan, signal), tendAfterMs);
      }
    }
  }

  /** Notes drift that was found by asking ({@link AnyKind.findDrift}); the next reconcile repairs it. */
  markDrifted(key: string): void {
    this.#memory(key).drifted = true;
  }

  /** Forgets all that is known of an object: another replica has worked on it since. */
  forget(key: string): void {
    this.#memories.delete(key);
  }

  /** Forgets that the last attempt was terminal: what it ran into may be gone. */
  reconsider(key: string): void {
    this.#memory(key).lastAttempt = undefined;
  }

  /** Nothing is to be done; what is alive may have changed all the same, and a pause or a fight may be over. */
  async #rest(object: LiveObject, memory: Memory): Promise<Outcome> {
    const generation = object.metadata.generation ?? 0;
    const { conditions = [] } = statusOf(object);
    const change: NewCondition[] = [];
    if (["Paused", "BackOff"].includes(findCondition(conditions, "Reconciling")?.reason ?? "")) {
      change.push(...resumedConditions(generation, findCondition(conditions, "Ready")?.status === "True"));
    }
    const contested = findCondition(conditions, "Contested")?.status === "True";
    const unsettledMs = contested ? Math.max(0, memory.repairs.settledAt - performance.now()) : 0;
    if (contested && unsettledMs === 0) change.push(...contestedConditions(generation, undefined));
    if (object.status !== undefined) await this.#write(object, memory, { conditions: change });
    return unsettledMs > 0 ? { afterMs: unsettledMs } : "done";
  }

  /** Whether a repair has to wait, because of a fight or because replacements end as well; says so. @returns for how long, in ms */
  async #backOff(object: LiveObject, memory: Memory, ended: readonly string[]): Promise<number> {
    const now = performance.now();
    const { repairs, replacements } = memory;
    const endedMs = ended.length > 0 ? replacements.notBefore - now : 0;
    const waitMs = Math.max(repairs.notBefore - now, endedMs, 0);
    if (waitMs === 0) return 0;
    const conditions = endedMs > 0 ? backOffConditions(object.metadata.generation ?? 0, ended) : [];
    const [condition] = conditions;
    const known = findCondition(statusOf(object).conditions, "Reconciling")?.reason === condition?.reason;
    if (condition && !known) this.#options.recorder.event(object, "Warning", condition.reason, condition.message);
    await this.#write(object, memory, { conditions });
    return Math.ceil(waitMs);
  }

  async #update(
    key: string,
    found: LiveObject,
    memory: Memory,
    { cause, refresh, drift, wanting, ended, waiting }: Plan,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const { kind, claims, recorder, observe } = this.#options;
    const { uid, generation = 0, annotations } = found.metadata;
    const logger = this.#logger(found).child({ cause });
    const requested = annotations?.[RECONCILE_ANNOTATION];
    const handled = {
      observedGeneration: generation,
      ...(requested !== undefined && { lastHandledReconcile: requested }),
    };
    const observed = this.#options.observed(key);
    let object = found;
    let announcement: Announcement | undefined;
    let failures: UpdateFailure[];
    const strays = mayHaveStrays(found, memory.lastAttempt);
    try {
      const parsed = parseObject(kind, object);
      const around = await this.#surroundings(key, object, memory, waiting);
      const onlyShort = cause === "Repairing" && drift.edited.length + drift.missing.length === 0 && !memory.drifted;
      // Nothing is short but in a cache that is behind; the event that is still to come leads here again.
      if (onlyShort && kind.shortfall?.(parsed, around.owned, around.observed).length === 0) return "done";
      if (ended.length > waiting.length) memory.replacements.count(performance.now());
      this.#takeClaims(key, parsed, around.observed);
      object = await this.#writer.hold(object, memory, this.#stacks.numberOf(object));
      if (!(await this.#isAsShown(found, object))) return "retry";
      announcement = this.#announce(object, memory, cause);
      const contest = cause === "Repairing" ? await this.#watchContest(memory, drift) : undefined;
      const result = await this.#stacks.up(key, found, this.#program(key, parsed, object, around), {
        refresh,
        signal,
      });
      observe(result, cause);
      if (result.outcome === "interrupted") return "retry";
      failures = result.failures;
      if (result.outcome === "succeeded") {
        if (strays) await this.#removeStrays(key, object, result.resources, { release: false });
        memory.drifted = false;
        memory.learn(result);
        memory.lastAttempt = this.#attempt(object, "succeeded", wanting);
        claims.settle(uid, kind.claims?.(parsed, around.observed) ?? []);
        const record = this.#record(this.#stacks.nameOf(key, found), result);
        await this.#catchUp(record, memory);
        const written = await this.#write(await announcement.over(), memory, {
          ...handled,
          conditions: succeededConditions(generation),
          stack: record,
        });
        const changes = describeChanges(result.changes);
        logger.info({ changes: result.changes, durationMs: Math.round(result.durationMs) }, "updated");
        if (changes !== "") recorder.event(object, "Normal", cause === "Repairing" ? "Repaired" : "Updated", changes);
        if (contest !== undefined) return this.#reportContest(written, memory, contest, result);
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
      announcement?.cancel();
    }
    if (!isSameAs(observed, this.#options.observed(key))) {
      logger.info({ failures }, "update failed for objects that have changed meanwhile");
      return "retry";
    }
    const terminal = isTerminal(failures);
    memory.lastAttempt = this.#attempt(object, terminal ? "terminal" : "retryable", wanting);
    logger.warn({ failures }, terminal ? "update failed, waits for the object to change" : "update failed");
    recorder.event(object, "Warning", failures[0]?.reason ?? "UpdateFailed", describeFailures(failures));
    const latest = (await announcement?.over().catch(() => undefined)) ?? object;
    await this.#write(latest, memory, { ...handled, conditions: failedConditions(generation, failures) });
    return terminal ? "done" : "retry";
  }

  /**
   * Whether the spec that the cache shows is the object's: an update to an earlier one deletes what came with a later
   * one. Caches are behind for long where a watch has gone silent, and another replica has worked on the object since.
   *
   * @param held the object as an apply has returned it, or, where none was needed, as the cache shows it
   */
  async #isAsShown(shown: LiveObject, held: LiveObject): Promise<boolean> {
    const live = held === shown ? await this.#writer.read(shown) : held;
    return (
      live?.metadata.uid === shown.metadata.uid &&
      live.metadata.generation === shown.metadata.generation &&
      live.metadata.deletionTimestamp === undefined
    );
  }

  /**
   * The status says what is going on while the engine starts, which costs no time of its own. In a stack that many share
   * it would cost a write for each of them; there it can wait where the object itself shows that an update was begun and
   * not ended ({@link #isUnfinished}).
   */
  #announce(object: LiveObject, memory: Memory, cause: Cause): Announcement {
    const knownReady = statusOf(object).stack !== undefined;
    const conditions = updatingConditions(object.metadata.generation ?? 0, cause, knownReady);
    const canWait = this.#options.sharing !== undefined && (cause === "Creating" || cause === "Updating");
    const write = () => this.#write(object, memory, { conditions });
    return new Announcement(object, write, canWait ? ANNOUNCE_AFTER_MS : 0);
  }

  #announceDeletion(object: LiveObject, memory: Memory): Announcement {
    const conditions = deletingConditions(object.metadata.generation ?? 0, []);
    const write = () => this.#write(object, memory, { conditions });
    return new Announcement(object, write, this.#options.sharing === undefined ? 0 : ANNOUNCE_AFTER_MS);
  }

  /**
   * Whether an update of the object may have been cut off, so that what it made is not known. A deletion makes a new
   * generation; if there is another one besides since the last update that ended, that one's may have been under way.
   */
  #isUnfinished({ metadata, status }: LiveObject): boolean {
    const { conditions, observedGeneration } = (status as CommonStatus | undefined) ?? {};
    if (isUnfinished(conditions)) return true;
    if (this.#options.sharing === undefined) return false;
    return observedGeneration === undefined || (metadata.generation ?? 0) - observedGeneration > 1;
  }

  async #destroy(key: string, found: LiveObject, memory: Memory, signal: AbortSignal): Promise<Outcome> {
    const { claims, observe, recorder } = this.#options;
    const { uid, generation = 0, namespace, name, annotations } = found.metadata;
    const logger = this.#logger(found);
    // The cache may be behind; a destroy must be of this very object, and it must really be on its way out.
    const live = await this.#writer.read(found);
    if (live?.metadata.uid !== uid || !live.metadata.deletionTimestamp) return "done";
    const strays = mayHaveStrays(live, memory.lastAttempt);
    if (this.#isUnfinished(live)) {
      const outcome = await this.#finish(key, live, memory, signal);
      if (outcome === "interrupted") return "retry";
    }
    const place = namespace === undefined ? "" : ` from the namespace ${namespace}`;
    recorder.event(live, "Warning", "Deleting", `Custom Resource ${name} is being deleted${place}`);
    const failedBefore = findCondition(statusOf(live).conditions, "Ready")?.reason === "DeletionFailed";
    const announcement = failedBefore ? undefined : this.#announceDeletion(live, memory);
    const announced = async () => (await announcement?.over().catch(() => undefined)) ?? live;
    const release = annotations?.[DELETION_POLICY_ANNOTATION] === "Orphan";
    let failures: UpdateFailure[];
    try {
      const result = await this.#stacks.destroy(key, live, { signal, release });
      observe(result, "Deleting");
      if (result.outcome === "interrupted") return "retry";
      failures = result.failures;
      if (result.outcome === "succeeded") {
        const object = await announced();
        if (strays) await this.#removeStrays(key, object, [], { release });
        claims.settle(uid, []);
        logger.info({ changes: result.changes, release, durationMs: Math.round(result.durationMs) }, "destroyed");
        const deleted = describeChanges(result.changes) || "nothing was left to delete";
        recorder.event(object, "Normal", release ? "Orphaned" : "Deleted", release ? "what was made is left" : deleted);
        await this.#writer.letGo(object, memory);
        this.#memories.delete(key);
        return "done";
      }
    } catch (error) {
      if (isOutdated(error) || signal.aborted) return "retry";
      failures = [failureOf(error, logger)];
    } finally {
      announcement?.cancel();
    }
    const object = await announced();
    logger.warn({ failures }, "destroy failed, the object stays");
    recorder.event(object, "Warning", "DeletionFailed", describeFailures(failures));
    await this.#write(object, memory, { conditions: deletingConditions(generation, failures) });
    return "retry";
  }

  /**
   * Before a destroy: an update of which nobody saw the end may have made what the state does not show and a destroy
   * would leave behind. The same update once more adopts that. When it fails, what the state has is destroyed all the
   * same: an object that can never be updated can still be deleted.
   */
  async #finish(key: string, found: LiveObject, memory: Memory, signal: AbortSignal): Promise<UpdateResult["outcome"]> {
    const { kind, observe } = this.#options;
    try {
      const parsed = parseObject(kind, found);
      const around = await this.#surroundings(key, found, memory);
      this.#takeClaims(key, parsed, around.observed);
      const object = await this.#writer.hold(found, memory, this.#stacks.numberOf(found));
      const program = this.#program(key, parsed, object, around);
      const result = await this.#stacks.up(key, found, program, { signal });
      observe(result, "Retrying");
      return result.outcome;
    } catch (error) {
      this.#logger(found).info({ err: error }, "the last update could not be finished before the object is destroyed");
      return "failed";
    }
  }

  async #removeStrays(
    key: string,
    { metadata: { uid } }: LiveObject,
    kept: readonly StackResource[],
    options: { release: boolean },
  ): Promise<void> {
    const { kind, owned } = this.#options;
    const ids = kept.flatMap(({ outputs }) => (isObjectOutputs(outputs) ? [objectId(outputs.manifest)] : []));
    for (const stray of findStrays(owned(uid), new Set(ids))) await removeStray(stray, options);
    const outputs = kept.map(({ outputs }) => outputs);
    await kind.removeStrays?.({ uid, description: ownerDescription(kind, key) }, outputs, options);
  }

  #program(
    key: string,
    parsed: KindObject,
    object: LiveObject,
    { owned, observed }: Surroundings,
  ): () => void | Promise<void> {
    const { kind } = this.#options;
    const context = {
      owner: { uid: object.metadata.uid, description: ownerDescription(kind, key) },
      owned,
      recorded: new Set(statusOf(object).stack?.resources?.map(({ id }) => id)),
      observed,
    };
    return () => kind.program(parsed, context);
  }

  /** @param waiting what ended and is not to be replaced yet */
  async #surroundings(
    key: string,
    object: LiveObject,
    memory: Memory,
    waiting: readonly string[] = [],
  ): Promise<Surroundings> {
    const { client, kind } = this.#options;
    const { owned, observed } = await readSurroundings(client, kind, key, object, this.#owned(object, memory));
    return { owned: asBegun(owned, waiting), observed };
  }

  /** @throws TerminalError naming the holder, when somebody else holds what the object claims */
  #takeClaims(key: string, object: KindObject, observed: readonly LiveObject[]): void {
    const { kind, claims, queueKey, view, describeOwner } = this.#options;
    const conflict = claims.take(object.metadata.uid, kind.claims?.(object, observed) ?? [], queueKey(key), (id) => {
      const live = observed.find((object) => objectId(object) === id) ?? view(id)?.object;
      return live && ownerUidOf(live);
    });
    if (conflict === undefined) return;
    const name = conflict.id.split("/").at(-1);
    throw new TerminalError(
      "Conflict",
      `${name} belongs to ${describeOwner(conflict.holder) ?? conflict.holder}; it will be taken when that lets go of it`,
    );
  }

  /**
   * Counts a repair. In a fight it also looks at what was found, so that the fields and their other managers can be named.
   *
   * What is missing does not count where the program depends on what is alive: there, things come and go.
   */
  async #watchContest(memory: Memory, { edited, missing }: Drift): Promise<Contest | undefined> {
    const deleted = this.#options.kind.shortfall === undefined ? missing : [];
    if (edited.length + deleted.length === 0 || !memory.repairs.count(performance.now())) return undefined;
    return { edited: await this.#readOwned(edited), deleted };
  }

  async #reportContest(
    object: LiveObject,
    memory: Memory,
    contest: Contest,
    { resources }: UpdateResult,
  ): Promise<Outcome> {
    const applied = resources.flatMap(({ outputs }) => (isObjectOutputs(outputs) ? [outputs.manifest] : []));
    const description = describeContest(contest, applied);
    this.#options.recorder.event(object, "Warning", "Contested", description);
    this.#logger(object).warn({ contest: description }, "somebody undoes every repair, slowing down");
    const generation = object.metadata.generation ?? 0;
    await this.#write(object, memory, { conditions: contestedConditions(generation, description) });
    return { afterMs: Math.max(0, memory.repairs.notBefore - performance.now()) };
  }

  async #readOwned(ids: readonly string[]): Promise<LiveObject[]> {
    const { client, view } = this.#options;
    const objects = await Promise.all(
      ids.map(async (id) => {
        const seen = view(id)?.object;
        if (seen === undefined) return undefined;
        const type = await client.resourceType(seen.apiVersion, seen.kind);
        return client.get(type, seen.metadata.name, seen.metadata.namespace);
      }),
    );
    return objects.filter((object) => object !== undefined);
  }

  #write(object: LiveObject, memory: Memory, change: StatusChange): Promise<LiveObject> {
    return this.#writer.writeStatus(object, memory, change);
  }

  /** What the caches show of what the object owns, without what we have deleted since. */
  #owned({ metadata }: LiveObject, memory: Memory): LiveObject[] {
    return this.#options.owned(metadata.uid).filter((owned) => !memory.hasDeleted(owned));
  }

  /**
   * Lets the kind do what needs no update. What is outdated by then is done when the newer state has come.
   *
   * @returns how long to wait before the next time, in ms; 0 when it needs no other
   */
  async #tend(object: LiveObject, memory: Memory): Promise<number> {
    const { kind, client } = this.#options;
    if (kind.tend === undefined || statusOf(object).stack === undefined) return 0;
    const tooSoonMs = memory.tendedAt + TEND_INTERVAL_MS - performance.now();
    if (tooSoonMs > 0) return tooSoonMs;
    let parsed: KindObject;
    try {
      parsed = parseObject(kind, object);
    } catch {
      return 0; // an update will say what is wrong with the object
    }
    const apply = async (manifest: Manifest, fieldManager: string) => {
      memory.tendedAt = performance.now();
      const type = await client.resourceType(manifest.apiVersion, manifest.kind);
      try {
        memory.tended.wrote((await client.apply(type, manifest, { fieldManager })).object);
      } catch (error) {
        if (!isOutdated(error)) throw error;
      }
    };
    try {
      const owned = this.#owned(object, memory).map((owned) => memory.tended.newest(owned));
      await kind.tend(parsed, { owned, apply });
      return 0;
    } catch (error) {
      this.#logger(object).warn({ err: error }, "could not be tended to, tried again soon");
      return TEND_RETRY_MS;
    }
  }

  /** What is not as it was applied, or short, by what the caches show. @param waiting what ended, and is to count */
  #wanting(
    key: string,
    object: LiveObject,
    memory: Memory,
    { edited, missing, unseen }: Drift,
    waiting: readonly string[] = [],
  ): string[] {
    const shortfall = unseen.length > 0 ? [] : this.#shortfall(key, object, memory, waiting);
    return [...edited, ...missing, ...shortfall, ...(memory.drifted ? ["what was compared"] : [])];
  }

  #shortfall(key: string, object: LiveObject, memory: Memory, waiting: readonly string[]): string[] {
    const { kind } = this.#options;
    if (kind.shortfall === undefined || statusOf(object).stack === undefined) return [];
    try {
      const owned = asBegun(this.#owned(object, memory), waiting);
      return kind.shortfall(parseObject(kind, object), owned, this.#options.observed(key));
    } catch {
      return []; // an update will say what is wrong with the object
    }
  }

  /** Waits for the caches to show what we have just applied, so that a status of what is alive is not of the past. */
  async #catchUp({ resources = [] }: StackRecord, memory: Memory): Promise<void> {
    const deadline = performance.now() + CATCH_UP_MS;
    while (findDrift(resources, memory.applied, this.#options.view).unseen.length > 0 && performance.now() < deadline) {
      await delay(5);
    }
  }

  #record(stack: string, { resources }: UpdateResult): StackRecord {
    const { program, view } = this.#options;
    const watched = resources
      .flatMap(({ outputs }) => (isObjectOutputs(outputs) ? [outputs] : []))
      .map(({ manifest, fields }) => ({ id: objectId(manifest), fields }))
      .filter(({ id }) => view(id) !== undefined)
      .sort((a, b) => (a.id < b.id ? -1 : 1));
    return { name: stack, program, ...(watched.length > 0 && { resources: watched }) };
  }

  #attempt({ metadata }: LiveObject, outcome: Attempt["outcome"], drift: string): Attempt {
    return {
      uid: metadata.uid,
      generation: metadata.generation ?? 0,
      program: this.#options.program,
      outcome,
      drift,
    };
  }

  #memory(key: string): Memory {
    let memory = this.#memories.get(key);
    if (memory === undefined) {
      memory = new Memory();
      this.#memories.set(key, memory);
    }
    return memory;
  }

  #logger({ metadata: { namespace, name, generation } }: LiveObject): Logger {
    return this.#options.logger.child({ kind: kindName(this.#options.kind), namespace, name, generation });
  }
}

/** What we acted on is not what is there any more; the next look will see what is. */
function isOutdated(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 404 || error.status === 409);
}

/** Another turn after `afterMs`, where an outcome asks for none and that is not 0. */
function orAfter(outcome: Outcome, afterMs: number): Outcome {
  return outcome === "done" && afterMs > 0 ? { afterMs } : outcome;
}

/** What ended, as if it had not, so that it is neither missed nor removed. */
function asBegun(owned: LiveObject[], ended: readonly string[]): LiveObject[] {
  return owned.map((object) => (ended.includes(objectId(object)) ? { ...object, status: undefined } : object));
}

/** Whether the same objects are there as before, and none of them has begun to be deleted. */
function isSameAs(before: readonly LiveObject[], after: readonly LiveObject[]): boolean {
  const names = (objects: readonly LiveObject[]) =>
    objects.map(({ metadata }) => `${metadata.uid} ${metadata.deletionTimestamp ?? ""}`).sort();
  return names(before).join() === names(after).join();
}

function failureOf(error: unknown, logger: Logger): UpdateFailure {
  const errorClass = errorClassOf(error);
  if (errorClass === "bug") logger.error({ err: error }, "unexpected error");
  return { errorClass, reason: errorReasonOf(error), message: errorMessageOf(error) };
}
