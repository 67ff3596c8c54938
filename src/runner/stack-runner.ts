import type { LimitFunction } from "p-limit";
import type { LiveObject } from "../../providers/kubernetes/client";
import { type AnyKind, findsWhatWasCutOff } from "../../stacks/contract/kind";
import { type NamespacedKey, objectKey, stackName } from "../../stacks/contract/object";
import type { StackAssignment } from "../../stacks/contract/shared-stack";
import type { StackEngine, UpdateResult } from "../automation/engine";
import type { UpdateFailure } from "../automation/failures";
import type { Program } from "../automation/language-server";
import { isScaffolding } from "../automation/urn";
import { partialResult } from "./members";

/** What runners need of the engine. */
export type RunnerEngine = Pick<StackEngine, "up" | "destroy" | "recorded" | "forget" | "stacks" | "isDirect">;

/** The stacks of a kind's objects, whether each object has one of its own or several share one. */
export interface StackRunner {
  /** Whether objects share stacks. Their workers then wait for the update of several. */
  readonly shared: boolean;
  /** Which shared stack is the object's, to be recorded on it before its first update; `undefined` if it shares none. */
  assignmentOf(object: LiveObject): StackAssignment | undefined;
  /** What one replica works on as a whole: a stack, or all shared stacks of a partition. */
  shardKeyOf(object: NamespacedKey): string;
  /** Objects that back off together, as they share a stack and fail for the same reason. */
  backoffGroupOf(object: LiveObject, failure: UpdateFailure | undefined): string | undefined;
  /** Begins a run of the object's stack; until it is closed, others of the same stack may wait for it. */
  open(object: LiveObject, signal: AbortSignal): StackRun;
  /**
   * Removes the state of an object's own stack when nothing is in it but these resources, which are gone by now: a second
   * destroy would do no more.
   *
   * @returns whether it did
   */
  forgetEmptied(object: LiveObject, gone: readonly (string | undefined)[], signal: AbortSignal): Promise<boolean>;
  /** To be called for every object before the first run and after each change; `gone` after a deletion. */
  seen(object: LiveObject): void;
  gone(key: string): void;
  /** To be called when all objects are known. @param includes whether a shard ({@link shardKeyOf}) is this replica's now */
  takeOver(includes: (shardKey: string) => boolean): Promise<void>;
  /** Interrupts what waits for an update of these shards, which go to another replica. */
  interrupt(includes: (shardKey: string) => boolean): void;
  /** Begins nothing more: what waits is interrupted. Resolves when the updates of shared stacks that run have ended. */
  stop(): Promise<void>;
}

/** One run of one object's stack: an update or a destroy, or none when preparing it shows that none is needed. */
export interface StackRun {
  /** Its stack, also when other records of it are written on the object meanwhile. */
  readonly stack: { name: string; assignment: StackAssignment | undefined };
  /** @param options with `verified`, the API server has just said that the object is as it was found */
  up(program: Program, options: { refresh: boolean; verified: boolean }): Promise<UpdateResult>;
  /** @param options with `release`, the resources are left as they are; `verified` as for `up` */
  destroy(options: { release: boolean; verified: boolean }): Promise<UpdateResult>;
  /** No update follows any more. */
  close(): void;
}

/**
 * What of a kind goes to one replica as a whole. Objects that may claim the same ({@link ExclusiveClaims}) go together,
 * whatever their kinds: who came first is known in one process only.
 */
export function shardKey(kind: AnyKind, otherwise: string): string {
  return kind.capabilities.claims === undefined ? otherwise : "claims";
}

/** A stack for each object. */
export class OwnStacks implements StackRunner {
  readonly shared = false;
  readonly #kind: AnyKind;
  readonly #engine: RunnerEngine;
  readonly #slots: LimitFunction;
  #stopped = false;

  /** @param slots how many updates run at the same time, of all kinds together */
  constructor(kind: AnyKind, engine: RunnerEngine, slots: LimitFunction) {
    this.#kind = kind;
    this.#engine = engine;
    this.#slots = slots;
  }

  assignmentOf(): undefined {
    return undefined;
  }

  shardKeyOf({ key }: NamespacedKey): string {
    return shardKey(this.#kind, stackName(this.#kind, key));
  }

  backoffGroupOf(): undefined {
    return undefined;
  }

  open(object: LiveObject, signal: AbortSignal): StackRun {
    const stack = this.#nameOf(object);
    const inSlot = (operation: UpdateResult["operation"], run: () => Promise<UpdateResult>) =>
      this.#slots(() => (this.#stopped || signal.aborted ? partialResult(operation, "interrupted") : run()));
    const { sdkRuntime } = this.#kind.capabilities;
    const savesOnce = findsWhatWasCutOff(this.#kind);
    return {
      stack: { name: stack, assignment: undefined },
      up: (program, { refresh }) =>
        inSlot("up", () => this.#engine.up(stack, program, { refresh, signal, sdkRuntime, savesOnce })),
      destroy: ({ release }) => inSlot("destroy", () => this.#engine.destroy(stack, { release, signal, savesOnce })),
      close: () => {},
    };
  }

  async forgetEmptied(
    object: LiveObject,
    gone: readonly (string | undefined)[],
    signal: AbortSignal,
  ): Promise<boolean> {
    const stack = this.#nameOf(object);
    const recorded = await this.#engine.recorded(stack, signal);
    const isEmptied = recorded?.every((urn) => isScaffolding(urn) || gone.includes(urn)) ?? false;
    if (isEmptied) await this.#engine.forget(stack, signal);
    return isEmptied;
  }

  seen(): void {}

  gone(): void {}

  async takeOver(): Promise<void> {}

  /** No more of them wait than there are slots. */
  interrupt(): void {}

  async stop(): Promise<void> {
    this.#stopped = true;
  }

  #nameOf(object: LiveObject): string {
    return stackName(this.#kind, objectKey(object.metadata));
  }
}
