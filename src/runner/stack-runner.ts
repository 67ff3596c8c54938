import type { LiveObject } from "../../providers/kubernetes/client";
import { type AnyKind, statusOf } from "../../stacks/contract/kind";
import { stackName } from "../../stacks/contract/object";
import { recordedPlace, type StackPlace, sharedStackName } from "../../stacks/contract/shared-stack";
import type { StackEngine, UpdateOptions, UpdateResult } from "../automation/engine";
import type { Program } from "../automation/language-server";
import { isScaffolding } from "../automation/shared-stack";
import { FINALIZER } from "../controller/finalizer";
import type { Placement } from "./assignment";
import { type Batches, placeName, type Request } from "./shared-stacks";

/** What the objects of a kind of the granularity `namespace` share. */
export interface Sharing {
  placement: Placement;
  batches: Batches;
}

interface Options extends Pick<UpdateOptions, "refresh" | "signal"> {
  /** The API server has just said that the object is as it was found. */
  isCurrent?: boolean;
}

/** Updates the stack behind an object, whether the object has it to itself or shares it. */
export class ObjectStacks {
  readonly #kind: AnyKind;
  readonly #engine: Pick<StackEngine, "up" | "destroy" | "recorded" | "forget">;
  readonly #sharing: Sharing | undefined;

  constructor(
    kind: AnyKind,
    engine: Pick<StackEngine, "up" | "destroy" | "recorded" | "forget">,
    sharing: Sharing | undefined,
  ) {
    this.#kind = kind;
    this.#engine = engine;
    this.#sharing = sharing;
  }

  /** The object's shared stack, to be recorded before the first update; `undefined` if it shares none. */
  placeOf(object: LiveObject): StackPlace | undefined {
    return this.#sharing?.placement.place(object);
  }

  /** The name of the object's stack. */
  nameOf(key: string, object: LiveObject): string {
    const place = this.placeOf(object);
    return place === undefined ? stackName(this.#kind, key) : sharedStackName(this.#kind, place);
  }

  /** Says that an update of the object is about to be asked for; the returned function takes it back. */
  expect(key: string, found: LiveObject): () => void {
    return this.#sharing?.batches.expect(this.#placeName(found), key) ?? (() => {});
  }

  /** @param found the object as it was before its stack was recorded */
  up(
    key: string,
    found: LiveObject,
    program: Program,
    { refresh = false, signal, isCurrent = false }: Options,
  ): Promise<UpdateResult> {
    if (this.#sharing === undefined) {
      return this.#engine.up(stackName(this.#kind, key), program, { refresh, ...(signal && { signal }) });
    }
    return this.#request(key, found, { type: "up", program, refresh }, isCurrent);
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

  /**
   * Removes the state of an object's own stack when nothing is in it but these resources, which are gone by now: a second
   * destroy would do no more.
   *
   * @returns whether it did
   */
  async forgetEmptied(key: string, gone: readonly (string | undefined)[], signal: AbortSignal): Promise<boolean> {
    if (this.#sharing !== undefined) return false;
    const stack = stackName(this.#kind, key);
    const recorded = await this.#engine.recorded(stack, signal);
    const isEmptied = recorded?.every((urn) => isScaffolding(urn) || gone.includes(urn)) ?? false;
    if (isEmptied) await this.#engine.forget(stack, signal);
    return isEmptied;
  }

  #request(key: string, found: LiveObject, wish: Request["wish"], isCurrent = false): Promise<UpdateResult> {
    const { batches } = this.#sharing as Sharing;
    return batches.request(this.#placeName(found), {
      key,
      wish,
      shown: isCurrent ? undefined : found,
      former: this.#formerOf(key, found),
    });
  }

  #placeName(found: LiveObject): string {
    const { placement } = this.#sharing as Sharing;
    return placeName(placement.place(found));
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
        ? found.metadata.finalizers?.includes(FINALIZER) === true && recordedPlace(this.#kind, found) === undefined
        : recorded === own;
    return isOfThatTime ? own : undefined;
  }
}
