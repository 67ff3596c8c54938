import { setMaxListeners } from "node:events";
import type { Logger } from "pino";
import type { KubernetesClient } from "../../providers/kubernetes/client";
import { Informer, type InformerObserver, type InformerOptions } from "./informer";

export interface InformerFactoryOptions {
  client: KubernetesClient;
  logger: Logger;
  /** See {@link InformerOptions.relistIntervalMs}. */
  relistIntervalMs: number | undefined;
  metrics: { informer(resource: string, lastContact: () => number): InformerObserver };
}

/** Makes informers of one cluster and runs them together. */
export class InformerFactory {
  readonly #options: InformerFactoryOptions;
  readonly #informers: Informer[] = [];

  constructor(options: InformerFactoryOptions) {
    this.#options = options;
  }

  /** Whether all caches are filled. */
  get hasSynced(): boolean {
    return this.#informers.every(({ hasSynced }) => hasSynced);
  }

  /**
   * Makes an informer; `type` is read from discovery.
   *
   * @param name what metrics call it; its type by default
   * @throws ApiError when the API server does not serve the type
   */
  async create(
    { apiVersion, kind }: { apiVersion: string; kind: string },
    options: Pick<InformerOptions, "indexers" | "labelSelector" | "onChange" | "transform">,
    name = `${apiVersion}/${kind}`,
  ): Promise<Informer> {
    const { client, logger, relistIntervalMs, metrics } = this.#options;
    const type = await client.resourceType(apiVersion, kind);
    const observer = metrics.informer(name, () => informer.lastContact);
    const informer: Informer = new Informer({ ...options, client, logger, relistIntervalMs, type, observer });
    this.#informers.push(informer);
    return informer;
  }

  /**
   * Runs all informers until `signal` is aborted.
   *
   * @returns `synced`, which resolves when all caches are filled, and `ended`
   */
  start(signal: AbortSignal): { synced: Promise<unknown>; ended: Promise<unknown> } {
    setMaxListeners(0, signal); // each informer listens to it, and how many those are depends on the kinds
    const ended = Promise.all(this.#informers.map((informer) => informer.start(signal)));
    return { synced: Promise.all(this.#informers.map(({ synced }) => synced)), ended };
  }
}
