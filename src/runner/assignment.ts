import type { LiveObject } from "../../providers/kubernetes/client";
import type { AnyKind } from "../../stacks/contract/kind";
import { namespaceOf, objectKey } from "../../stacks/contract/object";
import { OBJECTS_PER_STACK, partitionOf, recordedPlace, type StackPlace } from "../../stacks/contract/shared-stack";

export interface PlacementOptions {
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
}

/**
 * Which object of a kind is in which shared stack.
 *
 * An object that has a record is where it says. One that has none is put into the first stack of its partition with room,
 * so that the stacks are as few as may be, and stays there: what comes or goes later moves nothing, and neither does
 * another number of partitions.
 */
export class Placement {
  readonly #kind: AnyKind;
  readonly #partitions: number | undefined;
  readonly #limit: number;
  readonly #stacks = new Map<string, PartitionStacks>();
  readonly #places = new Map<string, StackPlace>();
  readonly #totals = new Map<string, number>();

  constructor(kind: AnyKind, { partitions, limit = OBJECTS_PER_STACK }: PlacementOptions = {}) {
    this.#kind = kind;
    this.#partitions = partitions;
    this.#limit = limit;
  }

  /** Takes in what an object says of itself; to be told of all objects before the first is placed. */
  seen(object: LiveObject): void {
    const place = recordedPlace(this.#kind, object);
    if (place !== undefined) this.#put(objectKey(object.metadata), place);
  }

  /** There is no such object any more. */
  gone(key: string): void {
    const place = this.#places.get(key);
    if (place === undefined) return;
    this.#places.delete(key);
    this.#count(key, -1);
    const stacks = this.#stacksOf(place.partition);
    stacks.sizes[place.number] = (stacks.sizes[place.number] ?? 1) - 1;
    stacks.roomFrom = Math.min(stacks.roomFrom, place.number);
    if (stacks.sizes.every((size) => !size)) this.#stacks.delete(place.partition); // namespaces come and go
  }

  /** The object's stack, which is chosen now if it has not been yet. */
  place(object: LiveObject): StackPlace {
    this.seen(object);
    const key = objectKey(object.metadata);
    const known = this.#places.get(key);
    if (known !== undefined) return known;
    const partition = this.partitionOf(key);
    const stacks = this.#stacksOf(partition);
    while ((stacks.sizes[stacks.roomFrom] ?? 0) >= this.#limit) stacks.roomFrom++;
    const place = { partition, number: stacks.roomFrom };
    this.#put(key, place);
    return place;
  }

  /** The partition whose stacks the object of this key is in, or will be. */
  partitionOf(key: string): string {
    return this.#places.get(key)?.partition ?? partitionOf(namespaceOf(key), this.#partitions);
  }

  /** How many objects of a namespace have been placed. */
  total(namespace: string): number {
    return this.#totals.get(namespace) ?? 0;
  }

  #put(key: string, place: StackPlace): void {
    const former = this.#places.get(key);
    if (former?.partition === place.partition && former.number === place.number) return;
    this.gone(key);
    this.#places.set(key, place);
    this.#count(key, 1);
    const { sizes } = this.#stacksOf(place.partition);
    sizes[place.number] = (sizes[place.number] ?? 0) + 1;
  }

  #count(key: string, change: number): void {
    const namespace = namespaceOf(key);
    const total = this.total(namespace) + change;
    if (total === 0) this.#totals.delete(namespace);
    else this.#totals.set(namespace, total);
  }

  #stacksOf(partition: string): PartitionStacks {
    let stacks = this.#stacks.get(partition);
    if (stacks === undefined) {
      stacks = { sizes: [], roomFrom: 0 };
      this.#stacks.set(partition, stacks);
    }
    return stacks;
  }
}
