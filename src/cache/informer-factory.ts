import { setMaxListeners } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import { isApiError, type KubernetesClient, type ObjectType } from "../../providers/kubernetes/client";
import { Informer, type InformerObserver, type InformerOptions } from "./informer";

interface InformerFactoryOptions {
  client: KubernetesClient;
  logger: Logger;
  /** See {@link InformerOptions.relistIntervalMs}. */
  relistIntervalMs: number;
  metrics: { informer(resource: string, lastContact: () => number): InformerObserver };
}

/** Makes informers of one cluster and runs them together. */
export class InformerFactory {
  /** What ends each; `undefined` for those that have not been started. */
  readonly #informers = new Map<Informer, AbortController | undefined>();

  constructor(private readonly options: InformerFactoryOptions) {}

  get hasSynced(): boolean {
    return [...this.#informers.keys()].every(({ hasSynced }) => hasSynced);
  }

  /** Whether one of them shows nothing new: lists of its type have failed for too long. */
  get isBlind(): boolean {
    return [...this.#informers.keys()].some(({ outage }) => outage !== undefined);
  }

  /**
   * Makes an informer; `type` is read from discovery.
   *
   * @param name what metrics call it; its type by default
   * @throws ApiError when the API server does not serve the type
   */
  async create(
    { apiVersion, kind }: { apiVersion: string; kind: string },
    options: Pick<
      InformerOptions,
      "indexers" | "labelSelector" | "metadataOnly" | "onChange" | "onRestore" | "prepare" | "transform"
    >,
    name = `${apiVersion}/${kind}`,
  ): Promise<Informer> {
    const { client, logger, relistIntervalMs, metrics } = this.options;
    const type = await client.resourceType(apiVersion, kind);
    const observer = metrics.informer(name, () => informer.lastContact);
    const informer: Informer = new Informer({ ...options, client, logger, relistIntervalMs, type, observer });
    this.#informers.set(informer, undefined);
    return informer;
  }

  /** Runs the informers made since the last call until `signal` is aborted or they are stopped. */
  start(signal: AbortSignal): { synced: Promise<unknown>; ended: Promise<unknown> } {
    setMaxListeners(0, signal); // each informer listens to it, and how many those are depends on the kinds
    const started = [...this.#informers].flatMap(([informer, stop]) => (stop === undefined ? [informer] : []));
    const ended = Promise.all(started.map((informer) => this.#run(informer, signal)));
    return { synced: Promise.all(started.map(({ synced }) => synced)), ended };
  }

  /** Ends informers; their caches stay as they are. */
  stop(informers: readonly Informer[]): void {
    for (const informer of informers) {
      this.#informers.get(informer)?.abort();
      this.#informers.delete(informer);
    }
  }

  async #run(informer: Informer, signal: AbortSignal): Promise<void> {
    const stop = new AbortController();
    this.#informers.set(informer, stop);
    await informer.start(AbortSignal.any([signal, stop.signal]));
  }
}

/** How often the API server is asked whether it serves a type by now. */
const INTERVAL_MS = 10_000;

/** The types that the API server does not serve. @param codes status codes that mean "not served", besides 404 */
export async function unservedTypes(
  client: Pick<KubernetesClient, "resourceType">,
  types: readonly ObjectType[],
  ...codes: readonly number[]
): Promise<ObjectType[]> {
  const unserved: ObjectType[] = [];
  for (const type of types) {
    try {
      await client.resourceType(type.apiVersion, type.kind);
    } catch (error) {
      if (!isApiError(error, 404, ...codes)) throw error;
      unserved.push(type);
    }
  }
  return unserved;
}

/** Calls `served` for each holder of types that the API server did not serve and now does, until `signal` is aborted. */
export async function pollUnserved<T>(
  client: Pick<KubernetesClient, "resourceType">,
  holders: () => Iterable<readonly [T, readonly ObjectType[]]>,
  served: (holder: T) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    await delay(INTERVAL_MS, undefined, { signal }).catch(() => {});
    for (const [holder, types] of [...holders()]) {
      if (signal.aborted || types.length === 0) continue;
      try {
        if ((await unservedTypes(client, types)).length < types.length) await served(holder);
      } catch {
        // The API server is away, or the type again: it is asked the next time.
      }
    }
  }
}
