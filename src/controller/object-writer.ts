import pLimit from "p-limit";
import { ApiError, type KubernetesClient, type LiveObject, type ResourceType } from "../../providers/kubernetes/client";
import type { AnyKind } from "../../stacks/contract/kind";
import { recordOfPlace, type StackPlace } from "../../stacks/contract/shared-stack";
import { FINALIZER, identityOf } from "./finalizer";
import type { Memory } from "./object-state";
import { composeStatus, type StatusChange, writeStatus } from "./status";

/** Requests of one kind that the API server has to answer at the same time; more make none of them faster. */
const REQUESTS_AT_ONCE = 16;

export interface ObjectWriterOptions {
  kind: AnyKind;
  type: ResourceType;
  client: KubernetesClient;
  /** What the object owns, as the caches show it. */
  owned(object: LiveObject, memory: Memory): LiveObject[];
}

/** Writes what Kindstack has on an object: its finalizer, the record of its stack, its status. */
export class ObjectWriter {
  readonly #options: ObjectWriterOptions;
  readonly #limiter = pLimit(REQUESTS_AT_ONCE);

  constructor(options: ObjectWriterOptions) {
    this.#options = options;
  }

  /** The object as it is, whatever the cache shows. */
  read({ metadata: { name, namespace } }: LiveObject): Promise<LiveObject | undefined> {
    const { client, type } = this.#options;
    return this.#limiter(() => client.get(type, name, namespace));
  }

  /**
   * Sets the finalizer and, for an object that shares its stack, the record of that, in one server-side apply: other
   * finalizers and annotations are not touched. The stack is chosen on this very state of the object: where the cache is
   * behind, another replica may have chosen another.
   */
  async hold(object: LiveObject, memory: Memory, place: StackPlace | undefined): Promise<LiveObject> {
    const { finalizers, annotations } = object.metadata;
    const record = place && recordOfPlace(place);
    const isRecorded = Object.entries(record ?? {}).every(([name, value]) => annotations?.[name] === value);
    if (isRecorded && finalizers?.includes(FINALIZER)) return object;
    const { client, type } = this.#options;
    const { apiVersion, kind } = object;
    const metadata = {
      ...identityOf(object),
      finalizers: [FINALIZER],
      ...(record && { annotations: record }),
      ...(!isRecorded && { resourceVersion: object.metadata.resourceVersion }),
    };
    return memory.wrote((await this.#limiter(() => client.apply(type, { apiVersion, kind, metadata }))).object);
  }

  /** Removes the finalizer, whoever has set it. */
  async letGo(object: LiveObject, memory: Memory): Promise<LiveObject> {
    const index = placeOfFinalizer(object);
    if (index < 0) return object;
    const { client, type } = this.#options;
    const path = `/metadata/finalizers/${index}`;
    const operations = [
      { op: "test", path, value: FINALIZER },
      { op: "remove", path },
    ];
    try {
      return memory.wrote(await this.#limiter(() => client.patchExactly(type, object, operations)));
    } catch (error) {
      // Somebody else's finalizer, which the cache still shows, or not yet, was before ours.
      const live = error instanceof ApiError && error.status === 422 ? await this.read(object) : undefined;
      if (live === undefined || placeOfFinalizer(live) === index) throw error;
      return this.letGo(live, memory);
    }
  }

  async writeStatus(object: LiveObject, memory: Memory, change: StatusChange): Promise<LiveObject> {
    const { kind, client, type, owned } = this.#options;
    return this.#limiter(async () => {
      const status = composeStatus(kind, object, owned(object, memory), change, new Date());
      memory.writes(status);
      return memory.wrote(await writeStatus(client, type, object, status));
    });
  }
}

function placeOfFinalizer({ metadata: { finalizers = [] } }: LiveObject): number {
  return finalizers.indexOf(FINALIZER);
}
