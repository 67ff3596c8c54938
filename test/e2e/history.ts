import type { LiveObject, ResourceType } from "../../providers/kubernetes/client";
import { client } from "./objects";

/** All that a watch shows of one object from now on. */
export class History {
  /** Oldest first. */
  readonly versions: LiveObject[] = [];
  readonly #stop = new AbortController();
  readonly #ended: Promise<void>;

  constructor(type: ResourceType, { metadata: { name, namespace = "", resourceVersion } }: LiveObject) {
    this.#ended = this.#watch(type, name, namespace, resourceVersion);
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#ended;
  }

  async #watch(type: ResourceType, name: string, namespace: string, resourceVersion: string): Promise<void> {
    const { signal } = this.#stop;
    const decoder = new TextDecoder();
    let rest = "";
    try {
      for await (const chunk of await client.watch(type, { namespace, resourceVersion, timeoutSeconds: 60, signal })) {
        const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
        rest = lines.pop() ?? "";
        const objects = lines.map((line) => (JSON.parse(line) as { object: LiveObject }).object);
        this.versions.push(...objects.filter(({ metadata }) => metadata.name === name));
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }
}
