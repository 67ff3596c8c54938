import pLimit, { type LimitFunction } from "p-limit";
import { isApiError, type KubernetesClient, known, type LiveObject } from "../../providers/kubernetes/client";
import { STATE_MISSING_ANNOTATION } from "../../stacks/contract/annotations";
import { type AnyKind, statusOf } from "../../stacks/contract/kind";
import { isLooser, type Mode } from "../../stacks/contract/mode";
import { FINALIZER, objectKey } from "../../stacks/contract/object";
import { recordOrphaned } from "../../stacks/contract/orphan-record";
import type { ProvenFreshness } from "../cache/freshness";
import type { EventRecorder } from "./event-recorder";
import { hasSeen, type KindCache, ownedOf } from "./kind-cache";
import type { ObjectState } from "./object-state";
import type { ReadYourWrites } from "./own-writes";
import { composeStatus, type StatusChange, writeStatus } from "./status";

/** Requests of one kind that the API server has to answer at the same time; more make none of them faster. */
const REQUESTS_AT_ONCE = 16;

const FINALIZER_MANAGER = "kindstack-finalizer";

interface ObjectWriterOptions {
  kind: AnyKind;
  client: KubernetesClient;
  cache: Pick<KindCache, "object" | "owned" | "view" | "unserved">;
  freshness: Pick<ProvenFreshness, "wrote" | "holds">;
  recorder: Pick<EventRecorder, "event" | "wrote">;
  metrics: { loosened(): void };
}

/** All writes of a reconcile to its object: the finalizer, the status, Kindstack's annotations; and its Events. Reads it before. */
export class ObjectWriter {
  readonly #limit: LimitFunction;

  constructor(
    private readonly options: ObjectWriterOptions,
    limit = pLimit(REQUESTS_AT_ONCE),
  ) {
    this.#limit = limit;
  }

  /** This writer with another client of the same API server. */
  within(client: KubernetesClient): ObjectWriter {
    return new ObjectWriter({ ...this.options, client }, this.#limit);
  }

  /** The object as it is: as the cache shows it, where that is known to be up to date. */
  async current(object: LiveObject, writes: ReadYourWrites): Promise<LiveObject | undefined> {
    const { cache, freshness } = this.options;
    if (!freshness.holds()) return this.read(object);
    const cached = cache.object(objectKey(object.metadata));
    return cached && writes.latest(cached);
  }

  /** The object as it is, whatever the cache shows. */
  read(object: LiveObject): Promise<LiveObject | undefined> {
    return this.#limit(() => known(this.options.client.find(object)));
  }

  /**
   * Adds the finalizer by server-side apply: others are not touched, nor what a kind has applied that makes objects of this one.
   */
  async addFinalizer(object: LiveObject, writes: ReadYourWrites): Promise<LiveObject> {
    const { name, namespace, uid, finalizers } = object.metadata;
    if (finalizers?.includes(FINALIZER)) return object;
    const { client } = this.options;
    const { apiVersion, kind } = object;
    const metadata = {
      name,
      ...(namespace !== undefined && { namespace }),
      uid, // a successor of the same name is not written to
      finalizers: [FINALIZER],
    };
    const apply = () => client.apply({ apiVersion, kind, metadata }, { fieldManager: FINALIZER_MANAGER });
    return writes.record((await this.#write(apply)).object);
  }

  /** Records that the deletion that is under way leaves the object's resources behind. */
  async recordOrphaned(object: LiveObject, writes: ReadYourWrites): Promise<void> {
    writes.record(await this.#write(() => recordOrphaned(this.options.client, object)));
  }

  /** Removes what was decided for a lost state, which is done: it must not decide on another one. */
  async removeDecision(object: LiveObject, writes: ReadYourWrites): Promise<LiveObject> {
    const { annotations = {} } = object.metadata;
    const value = annotations[STATE_MISSING_ANNOTATION];
    if (value === undefined) return object;
    const path = `/metadata/annotations/${STATE_MISSING_ANNOTATION.replace("/", "~1")}`;
    try {
      return writes.record(await this.#removeExactly(object, path, value));
    } catch (error) {
      if (!isApiError(error, 422)) throw error;
      return object; // another decision by now, or none
    }
  }

  /** Removes the finalizer, regardless of the manager that set it. */
  async removeFinalizer(object: LiveObject, writes: ReadYourWrites): Promise<LiveObject> {
    const index = indexOfFinalizer(object);
    if (index < 0) return object;
    try {
      return writes.record(await this.#removeExactly(object, `/metadata/finalizers/${index}`, FINALIZER));
    } catch (error) {
      // Another controller's finalizer, which the cache still shows, or not yet, was before ours.
      const live = isApiError(error, 422) ? await this.read(object) : undefined;
      if (live === undefined || indexOfFinalizer(live) === index) throw error;
      return this.removeFinalizer(live, writes);
    }
  }

  /** Writes a change of the status, and what the kind makes of what is alive. */
  async writeStatus(object: LiveObject, state: ObjectState, change: StatusChange): Promise<LiveObject> {
    const { kind, client, cache, freshness } = this.options;
    return this.#write(async () => {
      const owned = {
        objects: ownedOf({ context: this.options, object, state }),
        isSeen: (id: string) => hasSeen(cache.view(id), state.expectations.applied.get(id)),
        unserved: (id: string) => cache.unserved(id),
      };
      state.unanswered = undefined;
      const status = await composeStatus(kind, object, owned, change, new Date(), (error) => {
        state.unanswered = error;
      });
      const sentAt = performance.now();
      const written = await state.writes.status(status, () => writeStatus(client, object, status));
      const version = written.metadata.resourceVersion;
      if (version !== object.metadata.resourceVersion) freshness.wrote({ version, sentAt });
      this.#tellLoosened(object, change.mode);
      return written;
    });
  }

  /** Removes a field that has this value. @throws ApiError 422 where it has another */
  #removeExactly(object: LiveObject, path: string, value: string): Promise<LiveObject> {
    const operations = [
      { op: "test", path, value },
      { op: "remove", path },
    ];
    return this.#write(() => this.options.client.patchExactly(object, operations));
  }

  /** Every write to an object is one of these. */
  async #write<T>(request: () => Promise<T>): Promise<T> {
    const written = await this.#limit(request);
    this.options.recorder.wrote();
    return written;
  }

  /** Tells of a less strict mode than the status had until this write: protection has ended. */
  #tellLoosened(object: LiveObject, mode: Mode = "Apply"): void {
    const { mode: before = "Apply" } = statusOf(object);
    if (!isLooser(mode, before)) return;
    this.options.metrics.loosened();
    this.event(object, "Warning", "ModeLoosened", `the mode was ${before} and is ${mode} now`);
  }

  /** Records an Event of the object. @see EventRecorder.event */
  event(object: LiveObject, type: "Normal" | "Warning", reason: string, note: string): void {
    this.options.recorder.event(object, type, reason, note);
  }
}

function indexOfFinalizer({ metadata: { finalizers = [] } }: LiveObject): number {
  return finalizers.indexOf(FINALIZER);
}
