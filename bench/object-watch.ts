import { pino } from "pino";
import type { KubernetesClient, LiveObject, ObjectType, ResourceType } from "../providers/kubernetes/client";
import { Informer } from "../src/cache/informer";
import { objectKey } from "../stacks/contract/object";
import { isReady as isReadyObject } from "../stacks/contract/readiness";

/** Without any progress for so long, something hangs. */
const STALLED_MS = 120_000;
const PROGRESS_MS = 5_000;

/** Waits for objects of a type, by one watch of all of them. */
export class ObjectWatch {
  readonly #informer: Informer;
  readonly #signal: AbortSignal;
  readonly #listeners = new Set<(key: string, object: LiveObject | undefined) => void>();

  private constructor(client: KubernetesClient, type: ResourceType, signal: AbortSignal) {
    this.#signal = signal;
    this.#informer = new Informer({
      client,
      type,
      onChange: ({ type, object }) => {
        const state = type === "deleted" ? undefined : object;
        for (const listener of this.#listeners) listener(objectKey(object.metadata), state);
      },
      logger: pino({ level: "silent" }),
    });
  }

  /** Gives the work a watch that knows all objects that exist; it ends with the work. */
  static async during<T>(
    client: KubernetesClient,
    { apiVersion, kind }: ObjectType,
    signal: AbortSignal,
    work: (watch: ObjectWatch) => Promise<T>,
  ): Promise<T> {
    const watch = new ObjectWatch(client, await client.resourceType(apiVersion, kind), signal);
    const stop = new AbortController();
    void watch.#informer.start(AbortSignal.any([signal, stop.signal]));
    try {
      await watch.#informer.synced;
      return await work(watch);
    } finally {
      stop.abort();
    }
  }

  get(key: string): LiveObject | undefined {
    return this.#informer.get(key);
  }

  /**
   * Resolves when all objects of these keys are as wanted, with the time (`performance.now()`) at which the first one
   * that was not and the last one became so.
   *
   * @param isDone asked whenever an object changes; gets `undefined` for one that does not exist
   * @param progress told how many are, now and then
   * @throws Error when nothing has happened for two minutes
   */
  until(
    keys: Iterable<string>,
    isDone: (object: LiveObject | undefined) => boolean,
    progress: (done: number) => void = () => {},
  ): Promise<{ first: number; last: number }> {
    const pending = new Set([...keys].filter((key) => !isDone(this.#informer.get(key))));
    const all = pending.size;
    let first = performance.now();
    if (pending.size === 0) return Promise.resolve({ first, last: first });
    return new Promise((resolve, reject) => {
      const end = (settle: () => void) => {
        this.#listeners.delete(listener);
        clearTimeout(stalled);
        clearInterval(reporting);
        this.#signal.removeEventListener("abort", onAbort);
        settle();
      };
      const onAbort = () => end(() => reject(this.#signal.reason));
      const stalled = setTimeout(() => {
        const [key = ""] = pending;
        const state = JSON.stringify(this.#informer.get(key)?.status ?? null);
        const message = `${pending.size} of ${all} objects made no progress for ${STALLED_MS / 1000} s; ${key}: ${state}`;
        end(() => reject(new Error(message)));
      }, STALLED_MS);
      const reporting = setInterval(() => progress(all - pending.size), PROGRESS_MS);
      this.#signal.addEventListener("abort", onAbort, { once: true });
      const listener = (key: string, object: LiveObject | undefined) => {
        if (!pending.has(key) || !isDone(object)) return;
        if (pending.size === all) first = performance.now();
        pending.delete(key);
        stalled.refresh();
        if (pending.size === 0) end(() => resolve({ first, last: performance.now() }));
      };
      this.#listeners.add(listener);
      if (this.#signal.aborted) onAbort();
    });
  }
}

/** Whether the operator has done what the object says now. */
export function isReady(object: LiveObject | undefined): boolean {
  return object !== undefined && isReadyObject(object);
}

export function isGone(object: LiveObject | undefined): boolean {
  return object === undefined;
}
