import { isDeepStrictEqual } from "node:util";
import type { Logger } from "pino";
import { errorClassOf, errorMessageOf, errorReasonOf, TerminalError } from "../../providers/errors";
import {
  ApiError,
  type KubernetesClient,
  type LiveObject,
  type Manifest,
  type ResourceType,
} from "../../providers/kubernetes/client";
import { isObjectOutputs } from "../../providers/kubernetes/object";
import { ownerUidOf } from "../../providers/kubernetes/ownership";
import { mergeConditions, type NewCondition } from "../../stacks/contract/condition";
import { type AnyKind, kindName, parseObject, statusOf } from "../../stacks/contract/kind";
import {
  type CommonStatus,
  type KindObject,
  objectId,
  objectKey,
  type StackRecord,
  stackName,
} from "../../stacks/contract/object";
import type { StackEngine, UpdateFailure, UpdateResult } from "../automation/engine";
import type { Claims } from "./claims";
import {
  deletingConditions,
  describeChanges,
  describeFailures,
  failedConditions,
  isTerminal,
  succeededConditions,
  updatingConditions,
} from "./conditions";
import { type Attempt, type Cause, decide } from "./decide";
import { findDrift, type OwnedView } from "./drift";
import { compareResourceVersions } from "./informer";
import type { EventRecorder } from "./recorder";

/** On every object from before its first update until its stack is destroyed. */
export const FINALIZER = "kindstack.dev/stack";

/** What a worker asks of the queue when it is done with an object. */
export type Outcome = "done" | "retry";

/** What one kind's reconciler works with. */
export interface ReconcilerOptions {
  kind: AnyKind;
  type: ResourceType;
  /** The digest of the kind's program. */
  program: string;
  client: KubernetesClient;
  engine: Pick<StackEngine, "up" | "destroy">;
  claims: Claims;
  recorder: EventRecorder;
  logger: Logger;
  /** The cached object of a key. */
  cached(key: string): LiveObject | undefined;
  /** The queue's name for a key of this kind. */
  queueKey(key: string): string;
  /** The cached objects that are labelled as owned by this UID. */
  owned(uid: string): LiveObject[];
  /** What the caches show of an owned object, by its id; `undefined` when its type is not watched. */
  view(id: string): OwnedView | undefined;
  /** Whether an object of this UID exists, and how to call it in a message. */
  describeOwner(uid: string): string | undefined;
  /** Told of every update that ran. */
  observe(result: UpdateResult, cause: Cause | "Deleting"): void;
}

/** What this process knows of an object beyond what the API server shows. */
interface Memory {
  /** The object as our last write returned it; newer than the cache until the watch catches up. */
  latest?: LiveObject;
  lastAttempt?: Attempt;
  /** The versions that our own applies left, by the id of the owned object. */
  appliedVersions: Map<string, string>;
  /** Set from outside for drift that no watch shows. */
  drifted: boolean;
}

/**
 * Brings the stack of one object in line with the object: from the queue's name to the engine, and back to the status.
 *
 * Level-based: it reads the present state, decides what that calls for ({@link decide}), does it, and writes down what
 * came of it. The same call for an object that needs nothing reads two caches and writes nothing.
 */
export class Reconciler {
  readonly #options: ReconcilerOptions;
  readonly #memories = new Map<string, Memory>();

  constructor(options: ReconcilerOptions) {
    this.#options = options;
  }

  async reconcile(key: string, signal: AbortSignal): Promise<Outcome> {
    const { kind, program, cached, view } = this.#options;
    const object = this.#newest(key, cached(key));
    if (object === undefined) {
      this.#memories.delete(key);
      return "done";
    }
    const memory = this.#memory(key);
    const status = statusOf(object);
    const action = decide({
      metadata: { generation: 0, ...object.metadata },
      finalized: object.metadata.finalizers?.includes(FINALIZER) ?? false,
      status,
      program,
      drifted: [
        ...findDrift(status.stack?.resources ?? [], memory.appliedVersions, view),
        ...(memory.drifted ? [`${kind.kind} ${key}`] : []),
      ],
      lastAttempt: memory.lastAttempt,
    });
    switch (action.type) {
      case "none":
        await this.#writeStatus(object, {});
        return "done";
      case "up":
        return this.#update(key, object, action.cause, action.refresh, signal);
      case "destroy":
        return this.#destroy(key, object, signal);
    }
  }

  /** Notes drift that was found by asking ({@link AnyKind.findDrift}); the next reconcile repairs it. */
  markDrifted(key: string): void {
    this.#memory(key).drifted = true;
  }

  /** Forgets that the last attempt was terminal: what it ran into may be gone. */
  reconsider(key: string): void {
    delete this.#memory(key).lastAttempt;
  }

  async #update(key: string, found: LiveObject, cause: Cause, refresh: boolean, signal: AbortSignal): Promise<Outcome> {
    const { kind, engine, claims, recorder, observe } = this.#options;
    const memory = this.#memory(key);
    const { uid, generation = 0 } = found.metadata;
    const logger = this.#logger(found).child({ cause });
    const stack = stackName(kind, key);
    let object = found;
    let progress: Promise<LiveObject> | undefined;
    let failures: UpdateFailure[];
    try {
      const parsed = parseObject(kind, object);
      this.#takeClaims(key, parsed);
      object = await this.#setFinalizer(object, true);
      // The status says what is going on while the engine starts; it costs no time of its own.
      const knownReady = statusOf(object).stack !== undefined;
      progress = this.#writeStatus(object, { conditions: updatingConditions(generation, cause, knownReady) });
      progress.catch(() => {}); // awaited below; until then nobody listens
      const context = { owner: { uid, description: `${kind.kind}.${kind.group}/${key}` } };
      const result = await engine.up(stack, () => kind.program(parsed, context), { refresh, signal });
      observe(result, cause);
      if (result.outcome === "interrupted") return "retry";
      failures = result.failures;
      if (result.outcome === "succeeded") {
        memory.drifted = false;
        this.#remember(memory, result);
        claims.settle(uid, kind.claims?.(parsed) ?? []);
        await this.#writeStatus(await progress, {
          conditions: succeededConditions(generation),
          observedGeneration: generation,
          stack: this.#record(stack, result),
        });
        const changes = describeChanges(result.changes);
        logger.info({ changes: result.changes, durationMs: Math.round(result.durationMs) }, "updated");
        if (changes !== "") recorder.event(object, "Normal", cause === "Repairing" ? "Repaired" : "Updated", changes);
        this.#attempted(memory, object, "succeeded");
        return "done";
      }
    } catch (error) {
      if (isOutdated(error)) return "retry";
      failures = [failureOf(error, logger)];
    }
    const terminal = isTerminal(failures);
    logger.warn({ failures }, terminal ? "update failed, waits for the object to change" : "update failed");
    recorder.event(object, "Warning", failures[0]?.reason ?? "UpdateFailed", describeFailures(failures));
    const latest = (await progress?.catch(() => undefined)) ?? object;
    await this.#writeStatus(latest, {
      conditions: failedConditions(generation, failures),
      observedGeneration: generation,
    });
    this.#attempted(memory, object, terminal ? "terminal" : "retryable");
    return terminal ? "done" : "retry";
  }

  async #destroy(key: string, found: LiveObject, signal: AbortSignal): Promise<Outcome> {
    const { kind, type, client, engine, claims, observe, recorder } = this.#options;
    const { uid, generation = 0, namespace, name } = found.metadata;
    const logger = this.#logger(found);
    // The cache may be behind; a destroy must be of this very object, and it must really be on its way out.
    const live = await client.get(type, name, namespace);
    if (live?.metadata.uid !== uid || !live.metadata.deletionTimestamp) return "done";
    const object = await this.#writeStatus(live, { conditions: deletingConditions(generation, []) });
    let failures: UpdateFailure[];
    try {
      const result = await engine.destroy(stackName(kind, key), { signal });
      observe(result, "Deleting");
      if (result.outcome === "interrupted") return "retry";
      failures = result.failures;
      if (result.outcome === "succeeded") {
        claims.settle(uid, []);
        logger.info({ changes: result.changes, durationMs: Math.round(result.durationMs) }, "destroyed");
        recorder.event(object, "Normal", "Deleted", describeChanges(result.changes) || "nothing was left to delete");
        await this.#setFinalizer(object, false);
        this.#memories.delete(key);
        return "done";
      }
    } catch (error) {
      if (isOutdated(error)) return "retry";
      failures = [failureOf(error, logger)];
    }
    logger.warn({ failures }, "destroy failed, the object stays");
    recorder.event(object, "Warning", "DeletionFailed", describeFailures(failures));
    await this.#writeStatus(object, { conditions: deletingConditions(generation, failures) });
    return "retry";
  }

  /** @throws TerminalError naming the holder, when somebody else holds what the object claims */
  #takeClaims(key: string, object: KindObject): void {
    const { kind, claims, queueKey, view, describeOwner } = this.#options;
    const conflict = claims.take(object.metadata.uid, kind.claims?.(object) ?? [], queueKey(key), (id) => {
      const live = view(id)?.object;
      const holder = live && ownerUidOf(live);
      return holder !== undefined && describeOwner(holder) !== undefined ? holder : undefined;
    });
    if (conflict === undefined) return;
    const [, , , name] = conflict.id.split("/");
    throw new TerminalError(
      "Conflict",
      `${name} belongs to ${describeOwner(conflict.holder) ?? conflict.holder}; it will be taken when that lets go of it`,
    );
  }

  /** Sets or removes the finalizer by server-side apply: other finalizers are not touched, whatever the cache shows. */
  async #setFinalizer(object: LiveObject, present: boolean): Promise<LiveObject> {
    if ((object.metadata.finalizers?.includes(FINALIZER) ?? false) === present) return object;
    const { client, type } = this.#options;
    const { object: written } = await client.apply(type, {
      apiVersion: object.apiVersion,
      kind: object.kind,
      metadata: { ...identityOf(object), ...(present && { finalizers: [FINALIZER] }) },
    });
    return this.#wrote(written);
  }

  /** Writes the status if it differs from what is there; what is not given stays. Returns the object as it then is. */
  async #writeStatus(
    object: LiveObject,
    change: { conditions?: NewCondition[]; observedGeneration?: number; stack?: StackRecord },
  ): Promise<LiveObject> {
    const { kind, client, type, owned } = this.#options;
    const before = statusOf(object);
    const { observedGeneration = before.observedGeneration, stack = before.stack } = change;
    const status: CommonStatus = {
      ...this.#report(object, owned(object.metadata.uid)),
      ...(observedGeneration !== undefined && { observedGeneration }),
      ...(stack !== undefined && { stack }),
      conditions: mergeConditions(before.conditions ?? [], change.conditions ?? [], new Date()),
    };
    // An object that was never worked on, such as one that is on its way out, gets no status for being looked at.
    if (isDeepStrictEqual(status, before) || (object.status === undefined && change.conditions === undefined)) {
      return object;
    }
    const { object: written } = await client.apply(
      type,
      {
        apiVersion: `${kind.group}/${kind.version}`,
        kind: kind.kind,
        metadata: identityOf(object),
        status,
      },
      { subresource: "status" },
    );
    return this.#wrote(written);
  }

  /** The kind's own fields; those of an object that cannot be parsed stay as they are. */
  #report(object: LiveObject, owned: LiveObject[]): object {
    const { kind } = this.#options;
    try {
      return kind.report(parseObject(kind, object), owned);
    } catch {
      const { conditions: _, observedGeneration: __, stack: ___, ...own } = statusOf(object);
      return own;
    }
  }

  #record(stack: string, { resources }: UpdateResult): StackRecord {
    const { program, view } = this.#options;
    return {
      name: stack,
      program,
      resources: resources
        .flatMap(({ outputs }) => (isObjectOutputs(outputs) ? [outputs] : []))
        .map(({ manifest, fields }) => ({ id: objectId(manifest), fields }))
        .filter(({ id }) => view(id) !== undefined)
        .sort((a, b) => (a.id < b.id ? -1 : 1)),
    };
  }

  #remember(memory: Memory, { resources }: UpdateResult): void {
    memory.appliedVersions = new Map(
      resources.flatMap(({ outputs }) =>
        isObjectOutputs(outputs) ? [[objectId(outputs.manifest), outputs.resourceVersion]] : [],
      ),
    );
  }

  #attempted(memory: Memory, object: LiveObject, outcome: Attempt["outcome"]): void {
    const { program, view } = this.#options;
    const { metadata } = object;
    const records = statusOf(memory.latest ?? object).stack?.resources ?? [];
    memory.lastAttempt = {
      uid: metadata.uid,
      generation: metadata.generation ?? 0,
      program,
      outcome,
      drift: findDrift(records, memory.appliedVersions, view).join(),
    };
  }

  #memory(key: string): Memory {
    let memory = this.#memories.get(key);
    if (memory === undefined) {
      memory = { appliedVersions: new Map(), drifted: false };
      this.#memories.set(key, memory);
    }
    return memory;
  }

  /** Our own last write may be newer than what the watch has brought so far. */
  #newest(key: string, cached: LiveObject | undefined): LiveObject | undefined {
    const memory = this.#memories.get(key);
    const latest = memory?.latest;
    if (
      latest !== undefined &&
      latest.metadata.uid === cached?.metadata.uid &&
      compareResourceVersions(latest.metadata.resourceVersion, cached.metadata.resourceVersion) > 0
    ) {
      return latest;
    }
    delete memory?.latest;
    return cached;
  }

  #wrote(written: LiveObject): LiveObject {
    this.#memory(objectKey(written.metadata)).latest = written;
    return written;
  }

  #logger({ metadata: { namespace, name, generation } }: LiveObject): Logger {
    return this.#options.logger.child({ kind: kindName(this.#options.kind), namespace, name, generation });
  }
}

function identityOf({ metadata: { name, namespace, uid } }: LiveObject): Manifest["metadata"] {
  return { name, ...(namespace !== undefined && { namespace }), uid };
}

/** What we acted on is not what is there any more; the next look will see what is. */
function isOutdated(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 404 || error.status === 409);
}

function failureOf(error: unknown, logger: Logger): UpdateFailure {
  const errorClass = errorClassOf(error);
  if (errorClass === "bug") logger.error({ err: error }, "unexpected error");
  return { errorClass, reason: errorReasonOf(error), message: errorMessageOf(error) };
}
