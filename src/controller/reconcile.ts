import type { ClassifiedError } from "../../providers/errors";
import type { LiveObject } from "../../providers/kubernetes/client";
import { findCondition, type NewCondition } from "../../stacks/contract/condition";
import { statusOf } from "../../stacks/contract/kind";
import { objectKey, PAUSED_ANNOTATION, RECONCILE_ANNOTATION } from "../../stacks/contract/object";
import { ObjectStacks } from "../runner/stack-runner";
import { contestedConditions, driftUnknownCondition, pausedConditions, resumedConditions } from "./conditions";
import {
  isOutdated,
  loggerOf,
  type Outcome,
  ownedOf,
  type ReconcileContext,
  type ReconcilerOptions,
  type Turn,
  writeStatus,
} from "./context";
import { decide } from "./decide";
import { destroyObject } from "./destroy";
import { findDrift } from "./drift";
import { FINALIZER } from "./finalizer";
import { tend } from "./maintain";
import { Memory } from "./object-state";
import { ObjectWriter } from "./object-writer";
import { backOff, findWanting } from "./repair";
import { type Plan, updateObject } from "./update";

/**
 * Brings the stack of one object in line with the object: from the queue's name to the engine, and back to the status.
 *
 * Level-based: it reads the present state, decides what that calls for ({@link decide}), does it, and writes down what
 * came of it. The same call for an object that needs nothing reads two caches and writes nothing.
 */
export class Reconciler {
  readonly #context: ReconcileContext;
  readonly #memories = new Map<string, Memory>();

  constructor(options: ReconcilerOptions) {
    const { kind, type, client, engine, sharing } = options;
    this.#context = {
      ...options,
      stacks: new ObjectStacks(kind, engine, sharing),
      writer: new ObjectWriter({
        kind,
        type,
        client,
        owned: (object, memory) => ownedOf({ context: this.#context, object, memory }),
      }),
    };
  }

  async reconcile(key: string, signal: AbortSignal): Promise<Outcome> {
    const context = this.#context;
    const shown = context.cached(key);
    if (shown === undefined) {
      this.#memories.delete(key);
      return "done";
    }
    const memory = this.#memory(key);
    const object = memory.newest(shown);
    const turn: Turn = { context, key, object, memory, signal };
    const { annotations = {}, finalizers = [] } = object.metadata;
    const status = statusOf(object);
    const waitMs = (await memory.pending?.holdsForMs(turn)) ?? 0;
    const ended = waitMs === 0 ? memory.pending : undefined;
    if (ended !== undefined) memory.pending = undefined;
    const drift = findDrift(status.stack?.resources ?? [], memory.applied, context.view);
    const drifted = findWanting(turn, drift).filter((id) => !memory.pending?.covers(id));
    const action = decide({
      metadata: { generation: 0, ...object.metadata },
      finalized: finalizers.includes(FINALIZER),
      paused: annotations[PAUSED_ANNOTATION] === "true",
      requested: annotations[RECONCILE_ANNOTATION],
      status,
      program: context.program,
      drifted,
      lastAttempt: memory.lastAttempt,
      waits: waitMs > 0,
    });
    const tendAfterMs = action.type === "none" || action.type === "up" ? await tend(turn) : 0;
    switch (action.type) {
      case "none":
        return orAfter(await rest(turn), tendAfterMs);
      case "wait":
        await memory.pending?.report(turn);
        return { afterMs: waitMs };
      case "hold":
        return restoreFinalizer(turn);
      case "pause":
        await writeStatus(turn, object, { conditions: pausedConditions(object.metadata.generation ?? 0) });
        return "done";
      case "destroy": {
        const outcome = await destroyObject(turn, ended);
        if (outcome !== "gone") return outcome;
        this.#memories.delete(key);
        return "done";
      }
      case "up":
        return orAfter(await update(turn, { ...action, drift, drifted }), tendAfterMs);
    }
  }

  /**
   * Notes what asking for drift ({@link AnyKind.findDrift}) found of an object.
   *
   * @param failure why it could not be compared
   * @returns whether the object needs a reconcile: to repair it, or to say that drift is unknown, or is known again
   */
  noteComparison(object: LiveObject, drifted: boolean, failure: ClassifiedError | undefined): boolean {
    const memory = this.#memory(objectKey(object.metadata));
    if (drifted) memory.drifted = true;
    memory.driftUnknown = driftUnknownCondition(object.metadata.generation ?? 0, failure);
    return drifted || !isSaid(object, memory.driftUnknown);
  }

  /** Whether an object has the status that we wrote last. */
  hasOwnStatus(object: LiveObject): boolean {
    return this.#memories.get(objectKey(object.metadata))?.hasOwnStatus(object) ?? false;
  }

  /** Forgets all that is known of an object: it is gone, or another replica has worked on it since. */
  forget(key: string): void {
    this.#memories.delete(key);
  }

  /** Forgets that the last attempt was terminal: what it ran into may be gone. */
  reconsider(key: string): void {
    const memory = this.#memories.get(key);
    if (memory === undefined) return;
    memory.lastAttempt = undefined;
    memory.reconsidered++;
  }

  #memory(key: string): Memory {
    let memory = this.#memories.get(key);
    if (memory === undefined) {
      memory = new Memory();
      this.#memories.set(key, memory);
    }
    return memory;
  }
}

/** Sets the finalizer again, with the record of the stack; what else is to be done is seen on the next look. */
async function restoreFinalizer(turn: Turn): Promise<Outcome> {
  const { context, object, memory } = turn;
  try {
    await context.writer.hold(object, memory, context.stacks.placeOf(object));
    loggerOf(turn).info("finalizer restored");
    return { afterMs: 0 };
  } catch (error) {
    if (isOutdated(error)) return "retry";
    throw error;
  }
}

/**
 * Nothing is to be done; what is alive may have changed all the same, and a pause or a fight may be over, or an operator
 * have ended before it said that an update had.
 */
async function rest(turn: Turn): Promise<Outcome> {
  const { object, memory } = turn;
  const { generation = 0, deletionTimestamp } = object.metadata;
  const { conditions = [] } = statusOf(object);
  const change: NewCondition[] = [];
  if (!deletionTimestamp && findCondition(conditions, "Reconciling") !== undefined) {
    change.push(...resumedConditions(generation));
  }
  const contested = findCondition(conditions, "Contested")?.status === "True";
  const unsettledMs = contested ? Math.max(0, memory.repairs.settledAt - performance.now()) : 0;
  if (contested && unsettledMs === 0) change.push(...contestedConditions(generation, undefined));
  if (memory.driftUnknown !== undefined && !isSaid(object, memory.driftUnknown)) {
    const { type, status, reason, message } = memory.driftUnknown;
    change.push(memory.driftUnknown);
    if (status === "True") turn.context.recorder.event(object, "Warning", type, `${reason}: ${message}`);
  }
  if (object.status !== undefined) await writeStatus(turn, object, { conditions: change });
  return unsettledMs > 0 ? { afterMs: unsettledMs } : "done";
}

/** An update, unless it is a repair that has to wait. What is short beside what waits is made good meanwhile. */
async function update(turn: Turn, plan: Omit<Plan, "ended" | "waiting">): Promise<Outcome> {
  if (plan.cause !== "Repairing") return updateObject(turn, { ...plan, ended: [], waiting: [] });
  const ended = turn.context.kind.ended?.(ownedOf(turn)) ?? [];
  const waitMs = await backOff(turn, ended);
  if (waitMs === 0) return updateObject(turn, { ...plan, ended, waiting: [] });
  const isContested = turn.memory.repairs.notBefore > performance.now();
  const lacksMore = !isContested && findWanting(turn, plan.drift, ended).length > 0;
  return lacksMore ? updateObject(turn, { ...plan, ended, waiting: ended }) : { afterMs: waitMs };
}

/** Whether the object's status says this already; of a condition that is not so, by not having it. */
function isSaid(object: LiveObject, { type, status, reason, message }: NewCondition): boolean {
  const said = findCondition(statusOf(object).conditions, type);
  if (status === "False") return said === undefined;
  return said?.status === status && said.reason === reason && said.message === message;
}

/** Another turn after `afterMs`, where an outcome asks for none and that is not 0. */
function orAfter(outcome: Outcome, afterMs: number): Outcome {
  return outcome === "done" && afterMs > 0 ? { afterMs } : outcome;
}
