import type { Logger } from "pino";
import { errorMessageOf } from "../../providers/errors";
import type { LiveObject } from "../../providers/kubernetes/client";
import { type AnyKind, statusOf } from "../../stacks/contract/kind";
import { namespaceOf, objectKey } from "../../stacks/contract/object";
import { type StackAssignment, sharedStackAssignment, sharedStackName } from "../../stacks/contract/shared-stack";
import { assignmentId } from "./batches";
import { destroyMembers, membersOf } from "./members";
import type { RunnerEngine } from "./stack-runner";

export interface StaleMembersOptions {
  kind: AnyKind;
  engine: RunnerEngine;
  /** An object as the cache shows it. */
  find(key: string): LiveObject | undefined;
  /** Which of these objects are still as they are here, by their keys. */
  findFresh(objects: readonly LiveObject[]): Promise<ReadonlySet<string>>;
  /** Asks for a call of {@link StaleMembers.remove} for this stack, when no update of it runs. */
  enqueue(stack: StackAssignment): void;
  logger: Logger;
}

/**
 * Members of shared stacks whose objects are in another stack by now. An object that lost its finalizer by force leaves
 * one behind: created again, it may be placed elsewhere, and takes its resources along.
 *
 * Such a member is removed from the state, and no provider is asked: nothing in it is that stack's any more. The member
 * of an object that does not exist stays: the object may come back.
 */
export class StaleMembers {
  readonly #options: StaleMembersOptions;
  /** Members that may belong to another stack, by the object's key and the stack's id. */
  readonly #suspects = new Map<string, Map<string, StackAssignment>>();

  constructor(options: StaleMembersOptions) {
    this.#options = options;
  }

  /** Notes that a stack may have a member whose object is not in it. */
  suspect(key: string, stack: StackAssignment): void {
    const stacks = this.#suspects.get(key) ?? new Map<string, StackAssignment>();
    this.#suspects.set(key, stacks.set(assignmentId(stack), stack));
    const object = this.#options.find(key);
    if (object !== undefined) this.seen(object);
  }

  /** Takes in what an object says of itself. */
  seen(object: LiveObject): void {
    const key = objectKey(object.metadata);
    const recorded = this.#suspects.has(key) ? this.#recordedStack(object) : undefined;
    if (recorded === undefined) return;
    this.#clear(key, recorded);
    for (const stack of this.#suspects.get(key)?.values() ?? []) this.#options.enqueue(stack);
  }

  /**
   * Looks for such members in a stack's state.
   *
   * @param isHere whether the object with this key is in this stack, as far as is known
   * @throws RetryableError `Unreadable`
   */
  async look(stack: StackAssignment, isHere: (key: string) => boolean, signal: AbortSignal): Promise<void> {
    const { kind, engine } = this.#options;
    const recorded = (await engine.recorded(sharedStackName(kind, stack), signal)) ?? [];
    for (const key of membersOf(recorded)) if (!isHere(key)) this.suspect(key, stack);
  }

  /**
   * Looks for such members in the states of stacks in which no object is, as after a change of the partitions.
   *
   * @param used the names of the stacks that have objects
   * @param includes whether a partition's stacks are this replica's
   */
  async lookInUnused(
    used: ReadonlySet<string>,
    includes: (partition: string) => boolean,
    signal: AbortSignal,
  ): Promise<void> {
    const { kind, engine, logger } = this.#options;
    try {
      for (const name of await engine.stacks(`${kind.plural}.`)) {
        if (used.has(name) || signal.aborted) continue;
        const members = membersOf((await engine.recorded(name, signal)) ?? []);
        const [first] = members;
        const stack = first === undefined ? first : sharedStackAssignment(kind, namespaceOf(first), name);
        if (stack !== undefined && includes(stack.partition)) for (const key of members) this.suspect(key, stack);
      }
    } catch (error) {
      logger.warn({ reason: errorMessageOf(error) }, "failed to look for stale members of shared stacks");
    }
  }

  /**
   * Removes what is known to be stale from a stack's state. No update of the stack may run.
   *
   * @throws Error when the state could not be changed
   */
  async remove(stack: StackAssignment, signal: AbortSignal): Promise<void> {
    const { kind, engine, find, findFresh, logger } = this.#options;
    const id = assignmentId(stack);
    const moved = [...this.#suspects]
      .filter(([, stacks]) => stacks.has(id))
      .flatMap(([key]) => find(key) ?? [])
      .filter((object) => (this.#recordedStack(object) ?? id) !== id);
    if (moved.length === 0) return;
    const keys = [...(await findFresh(moved))];
    if (keys.length === 0) return;
    const name = sharedStackName(kind, stack);
    const results = await destroyMembers(engine, kind, name, keys, { forget: true, signal }, () => {});
    const [failure] = [...results.values()].flatMap(({ failures }) => failures);
    if (failure !== undefined) throw new Error(`stale members of ${name} could not be removed: ${failure.message}`);
    const removed = [...results].filter(([, { outcome }]) => outcome === "succeeded").map(([key]) => key);
    for (const key of removed) this.#clear(key, id);
    logger.info({ stack: name, removed }, "removed objects that are in another stack from the state");
  }

  #clear(key: string, stack: string): void {
    const suspects = this.#suspects.get(key);
    suspects?.delete(stack);
    if (suspects?.size === 0) this.#suspects.delete(key);
  }

  /** The id of the shared stack in which an update of the object succeeded. */
  #recordedStack(object: LiveObject): string | undefined {
    const name = statusOf(object).stack?.name;
    const stack = name && sharedStackAssignment(this.#options.kind, object.metadata.namespace ?? "", name);
    return stack && assignmentId(stack);
  }
}
