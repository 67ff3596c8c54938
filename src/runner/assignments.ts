import type { LiveObject } from "../../providers/kubernetes/client";
import { type AnyKind, statusOf } from "../../stacks/contract/kind";
import { type NamespacedKey, namespacedKey } from "../../stacks/contract/object";
import {
  OBJECTS_PER_STACK,
  partitionOf,
  recordedAssignment,
  type StackAssignment,
  sharedStackName,
} from "../../stacks/contract/shared-stack";

export interface AssignmentsOptions {
  /** Among how many partitions namespaces are spread that have no record; without it, each is one. */
  partitions?: number | undefined;
  /** How many objects a stack is meant to have. */
  limit?: number;
}

/** The stacks of a partition. */
interface PartitionStacks {
  /** How many objects are in each, by the stack's number. */
  sizes: number[];
  /** No stack before this one has room. */
  roomFrom: number;
  /** See {@link Assignments.isFirstLook}. */
  looked: Set<number>;
}

/**
 * Which object of a kind is in which shared stack.
 *
 * An object that has a record is where it says; if only an annotation does, as long as there is room. One that has none is
 * assigned to the first stack of its partition with room, so that the stacks are as few as possible, and stays there:
 * what is added or removed later moves nothing, and neither does another number of partitions.
 */
export class Assignments {
  readonly #kind: AnyKind;
  readonly #partitions: number | undefined;
  readonly #limit: number;
  readonly #stacks = new Map<string, PartitionStacks>();
  /** By the object's key. */
  readonly #assigned = new Map<string, { assignment: StackAssignment; namespace: string }>();
  readonly #totals = new Map<string, number>();

  constructor(kind: AnyKind, { partitions, limit = OBJECTS_PER_STACK }: AssignmentsOptions = {}) {
    this.#kind = kind;
    this.#partitions = partitions;
    this.#limit = limit;
  }

  /** Takes in what an object says of itself; to be told of all objects before the first is assigned. */
  seen(object: LiveObject): void {
    const recorded = recordedAssignment(this.#kind, object);
    if (recorded === undefined) return;
    // Users can write the annotations, and so fill a stack that they share with other namespaces.
    const isFull = (this.#stacks.get(recorded.partition)?.sizes[recorded.number] ?? 0) >= this.#limit;
    if (isFull && statusOf(object).stack?.name !== sharedStackName(this.#kind, recorded)) return;
    this.#put(namespacedKey(object.metadata), recorded);
  }

  /** There is no such object any more. */
  gone(key: string): void {
    const assigned = this.#assigned.get(key);
    if (assigned === undefined) return;
    this.#assigned.delete(key);
    this.#count(assigned.namespace, -1);
    const { partition, number } = assigned.assignment;
    const stacks = this.#stacksOf(partition);
    stacks.sizes[number] = (stacks.sizes[number] ?? 1) - 1;
    stacks.roomFrom = Math.min(stacks.roomFrom, number);
    if (stacks.sizes.every((size) => !size)) this.#stacks.delete(partition); // namespaces come and go
  }

  /** The object's stack, which is chosen now if it has not been yet. */
  assign(object: LiveObject): StackAssignment {
    this.seen(object);
    const named = namespacedKey(object.metadata);
    const known = this.get(named.key);
    if (known !== undefined) return known;
    const partition = this.partitionOf(named);
    const stacks = this.#stacksOf(partition);
    while ((stacks.sizes[stacks.roomFrom] ?? 0) >= this.#limit) stacks.roomFrom++;
    const assignment = { partition, number: stacks.roomFrom };
    this.#put(named, assignment);
    return assignment;
  }

  /** The object's stack, if it is known. */
  get(key: string): StackAssignment | undefined {
    return this.#assigned.get(key)?.assignment;
  }

  /** The stacks that have objects. */
  used(): StackAssignment[] {
    return [...this.#stacks].flatMap(([partition, { sizes }]) =>
      [...sizes.keys()].filter((number) => sizes[number]).map((number) => ({ partition, number })),
    );
  }

  /** Whether this is the first time that this is asked of a stack since it has had objects. */
  isFirstLook({ partition, number }: StackAssignment): boolean {
    const stacks = this.#stacks.get(partition);
    if (stacks === undefined || stacks.looked.has(number)) return false;
    stacks.looked.add(number);
    return true;
  }

  /** The partition whose stacks an object is in, or will be. */
  partitionOf({ key, namespace }: NamespacedKey): string {
    return this.get(key)?.partition ?? partitionOf(namespace, this.#partitions);
  }

  /** How many objects of a namespace have been assigned. */
  total(namespace: string): number {
    return this.#totals.get(namespace) ?? 0;
  }

  #put({ key, namespace }: NamespacedKey, assignment: StackAssignment): void {
    const former = this.get(key);
    if (former?.partition === assignment.partition && former.number === assignment.number) return;
    this.gone(key);
    this.#assigned.set(key, { assignment, namespace });
    this.#count(namespace, 1);
    const { sizes } = this.#stacksOf(assignment.partition);
    sizes[assignment.number] = (sizes[assignment.number] ?? 0) + 1;
  }

  #count(namespace: string, change: number): void {
    const total = this.total(namespace) + change;
    if (total === 0) this.#totals.delete(namespace);
    else this.#totals.set(namespace, total);
  }

  #stacksOf(partition: string): PartitionStacks {
    const stacks = this.#stacks.get(partition) ?? { sizes: [], roomFrom: 0, looked: new Set() };
    this.#stacks.set(partition, stacks);
    return stacks;
  }
}
