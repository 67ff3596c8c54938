import type { LiveObject } from "../../providers/kubernetes/client";
import type { AnyKind } from "../../stacks/contract/kind";
import { objectKey } from "../../stacks/contract/object";
import { OBJECTS_PER_STACK, recordedStackNumber } from "../../stacks/contract/shared-stack";

/**
 * Which object of a kind is in which shared stack of its namespace, by the stack's number.
 *
 * An object that has a record is where it says. One that has none is put into the first stack with room, so that the
 * stacks of a namespace are as few as may be, and stays there: what comes or goes later moves nothing.
 */
export class Placement {
  readonly #kind: AnyKind;
  readonly #limit: number;
  /** By namespace; the keys in each stack. */
  readonly #namespaces = new Map<string, Set<string>[]>();
  readonly #numbers = new Map<string, number>();

  constructor(kind: AnyKind, limit = OBJECTS_PER_STACK) {
    this.#kind = kind;
    this.#limit = limit;
  }

  /** Takes in what an object says of itself; to be told of all objects before the first is placed. */
  seen(object: LiveObject): void {
    const number = recordedStackNumber(this.#kind, object);
    if (number !== undefined) this.#put(objectKey(object.metadata), number);
  }

  /** There is no such object any more. */
  gone(key: string): void {
    const number = this.#numbers.get(key);
    if (number === undefined) return;
    this.#numbers.delete(key);
    this.#stack(key, number).delete(key);
  }

  /** The number of the object's stack, which is chosen now if it has not been yet. */
  place(object: LiveObject): number {
    this.seen(object);
    const key = objectKey(object.metadata);
    const known = this.#numbers.get(key);
    if (known !== undefined) return known;
    let number = 0;
    while (this.#stack(key, number).size >= this.#limit) number++;
    this.#put(key, number);
    return number;
  }

  /** How many objects of a namespace have been placed. */
  total(namespace: string): number {
    return this.#namespaces.get(namespace)?.reduce((sum, stack) => sum + stack.size, 0) ?? 0;
  }

  /** How many objects are in a stack. */
  count(namespace: string, number: number): number {
    return this.#namespaces.get(namespace)?.[number]?.size ?? 0;
  }

  #put(key: string, number: number): void {
    if (this.#numbers.get(key) === number) return;
    this.gone(key);
    this.#numbers.set(key, number);
    this.#stack(key, number).add(key);
  }

  #stack(key: string, number: number): Set<string> {
    const [namespace = ""] = key.split("/");
    let stacks = this.#namespaces.get(namespace);
    if (stacks === undefined) {
      stacks = [];
      this.#namespaces.set(namespace, stacks);
    }
    stacks[number] ??= new Set();
    return stacks[number];
  }
}
