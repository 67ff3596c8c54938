import type { LiveObject } from "../../providers/kubernetes/client";
import { FINALIZER } from "../../stacks/contract/hold";
import { type AnyKind, statusOf } from "../../stacks/contract/kind";
import { objectKey, stackName } from "../../stacks/contract/object";
import {
  isPlacedByDefault,
  keyOfResource,
  recordedStackNumber,
  sharedStackName,
} from "../../stacks/contract/shared-stack";
import type { StackEngine, UpdateOptions, UpdateResult } from "../automation/engine";
import { nameOf as nameOfResource } from "../automation/event-log";
import type { Program } from "../automation/language-server";
import { type Batches, placeOf, type Request } from "./batch";
import type { Placement } from "./placement";

/** What the objects of a kind of the granularity `namespace` share. */
export interface Sharing {
  placement: Placement;
  batches: Batches;
  /** The URNs in a stack's state; `undefined` when there is no such stack. */
  recorded: StackEngine["recorded"];
}

type Options = Pick<UpdateOptions, "refresh" | "signal">;

/** Updates the stack behind an object, whether the object has it to itself or shares it. */
export class ObjectStacks {
  readonly #kind: AnyKind;
  readonly #engine: Pick<StackEngine, "up" | "destroy">;
  readonly #sharing: Sharing | undefined;
  /** By namespace: the keys that the state of its first stack had when that was first asked. */
  readonly #inFirst = new Map<string, Promise<ReadonlySet<string>>>();

  constructor(kind: AnyKind, engine: Pick<StackEngine, "up" | "destroy">, sharing: Sharing | undefined) {
    this.#kind = kind;
    this.#engine = engine;
    this.#sharing = sharing;
  }

  /**
   * The number of the object's shared stack, to be recorded before the first update; `undefined` if it shares none.
   *
   * @throws RetryableError `Unreadable`
   */
  async place(object: LiveObject): Promise<number | undefined> {
    if (this.#sharing === undefined) return undefined;
    const { placement } = this.#sharing;
    // The object may be in the first stack since before a restart, when that still had room: nothing but its state says so.
    if (placement.place(object) > 0 && isPlacedByDefault(this.#kind, object)) {
      const { namespace = "" } = object.metadata;
      if ((await this.#keysInFirst(namespace)).has(objectKey(object.metadata))) placement.foundInFirst(object);
    }
    return placement.place(object);
  }

  /** Another replica has worked on the objects of this one's namespace since. */
  forget(key: string): void {
    this.#inFirst.delete(key.split("/")[0] ?? "");
  }

  /** The name of the object's stack. */
  nameOf(key: string, object: LiveObject): string {
    if (this.#sharing === undefined) return stackName(this.#kind, key);
    const number = this.#sharing.placement.place(object);
    return sharedStackName(this.#kind, object.metadata.namespace ?? "", number);
  }

  /** @param found the object as it was before its stack was recorded */
  up(key: string, found: LiveObject, program: Program, { refresh = false, signal }: Options): Promise<UpdateResult> {
    if (this.#sharing === undefined) {
      return this.#engine.up(stackName(this.#kind, key), program, { refresh, ...(signal && { signal }) });
    }
    return this.#request(key, found, { type: "up", program, refresh });
  }

  /** @param options with `release`, what was made is left as it is */
  destroy(
    key: string,
    found: LiveObject,
    { release, signal }: { release: boolean; signal: AbortSignal },
  ): Promise<UpdateResult> {
    if (this.#sharing === undefined) return this.#engine.destroy(stackName(this.#kind, key), { release, signal });
    return this.#request(key, found, { type: "destroy", release });
  }

  async #request(key: string, found: LiveObject, wish: Request["wish"]): Promise<UpdateResult> {
    const { batches } = this.#sharing as Sharing;
    const place = placeOf(found.metadata.namespace ?? "", (await this.place(found)) ?? 0);
    return batches.request(place, { key, object: found, wish, former: this.#formerOf(key, found) });
  }

  #keysInFirst(namespace: string): Promise<ReadonlySet<string>> {
    let keys = this.#inFirst.get(namespace);
    if (keys === undefined) {
      const { recorded } = this.#sharing as Sharing;
      keys = recorded(sharedStackName(this.#kind, namespace, 0)).then(
        (urns = []) => new Set(urns.map((urn) => keyOfResource(nameOfResource(urn)))),
      );
      keys.catch(() => this.#inFirst.delete(namespace));
      this.#inFirst.set(namespace, keys);
    }
    return keys;
  }

  /**
   * The stack that the object had to itself before its kind shared stacks, until it has been left. An object of that
   * time whose first update was cut off has no record at all, but a finalizer.
   */
  #formerOf(key: string, found: LiveObject): string | undefined {
    const own = stackName(this.#kind, key);
    const recorded = statusOf(found).stack?.name;
    const isOfThatTime =
      recorded === undefined
        ? found.metadata.finalizers?.includes(FINALIZER) === true &&
          recordedStackNumber(this.#kind, found) === undefined
        : recorded === own;
    return isOfThatTime ? own : undefined;
  }
}
