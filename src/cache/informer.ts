import timers from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import type { Logger } from "pino";
import { errorMessageOf } from "../../providers/errors";
import {
  ApiError,
  isApiError,
  isUnknownKind,
  type KubernetesClient,
  type LiveObject,
  type ResourceType,
} from "../../providers/kubernetes/client";
import { objectKey } from "../../stacks/contract/object";
import { exponentialBackoff } from "../queue/backoff";
import { compareResourceVersions, type ObjectChange, type WatchEvent, watchEvents } from "./change";
import { type Indexers, Store } from "./store";

export interface InformerObserver {
  /** All objects were listed again, after the first time; the cache shows them. */
  relisted(): void;
}

/** What shows the informer the objects of the API server. */
export type InformerClient = Pick<KubernetesClient, "list" | "watch" | "revision">;

export interface InformerOptions {
  client: InformerClient;
  type: ResourceType;
  labelSelector?: string | undefined;
  /** Only the metadata of objects is asked for and kept. */
  metadataOnly?: boolean | undefined;
  indexers?: Indexers | undefined;
  /** What the cache keeps of an object, for example without large fields that are not read. */
  transform?: (object: LiveObject) => LiveObject;
  /** Called with objects that the cache is to have, before it has them, such as for what indexers need and only others know. */
  prepare?: ((objects: readonly LiveObject[]) => Promise<void>) | undefined;
  /** Called after the cache has changed, one change at a time, in the order of the API server. */
  onChange: (change: ObjectChange) => void;
  /**
   * Called before the changes of a list that is older than what the cache shows: the data of the API server was restored from a
   * backup. Versions that are known from before tell nothing of what is there now.
   */
  onRestore?: (() => void) | undefined;
  logger: Logger;
  observer?: InformerObserver;
  /** All objects are listed again at least so often, against events that never came. */
  relistIntervalMs?: number | undefined;
}

/**
 * After a watch that is silent for so long, or for the time between two lists where that is shorter, everything is listed
 * again. The API server sends a bookmark about every minute.
 */
const IDLE_TIMEOUT_MS = 120_000;
const RELIST_INTERVAL_MS = 30 * 60_000;
const BACKOFF = { baseMs: 500, capMs: 30_000 };
/** A watch that ends sooner, and says nothing before it, did not work. */
const SHORTEST_WATCH_MS = 1_000;
/** A watch that ends sooner than asked for, by more than this, was cut off. */
const TIMEOUT_SLACK_MS = 1_000;

/**
 * A cache of all objects of one type, kept up to date by a list and then a watch, as client-go's informers do.
 *
 * A watch that ends is continued from the last version seen. Everything is listed again, and the differences to the cache are
 * reported as changes, when the API server no longer has that version (410) or has not come to it yet, as after a restore of
 * its data, when it refuses for another reason, and when the watch was silent.
 */
export class Informer extends Store {
  readonly #logger: Logger;
  readonly #filled = Promise.withResolvers<void>();
  /** Resolves when the cache is filled for the first time; rejects when the informer was stopped before. */
  readonly synced = this.#filled.promise;
  #hasSynced = false;

  #resourceVersion = "0";
  #listNeeded = true;
  /** Whether the last watch was cut off: another API server, or one with other data, may answer the next one. */
  #cutOff = false;
  /** By `performance.now()`: a clock that is set back must not put off the next list. */
  #listedAt = 0;
  #lastContact = performance.now();
  /** Failures since the last sign that all is well, and whether one of them was logged as a warning. */
  #failures = 0;
  #warned = false;
  #refusal: ApiError | undefined;
  #lastError: unknown;

  constructor(private readonly options: InformerOptions) {
    super(options.indexers);
    this.#logger = options.logger.child({ resource: options.type.plural });
    this.synced.catch(() => {}); // not everyone waits for it
  }

  get hasSynced(): boolean {
    return this.#hasSynced;
  }

  /** The newest version seen in a list, an event or a bookmark; "0" before the first list. */
  get resourceVersion(): string {
    return this.#resourceVersion;
  }

  /** When the API server was last heard of, by `performance.now()`; counted from the construction. */
  get lastContact(): number {
    return this.#lastContact;
  }

  /** Why the cache may lack changes: the API server refuses to show the objects, or has shown nothing for too long. */
  get failure(): unknown {
    return this.#refusal ?? this.outage;
  }

  /** Why lists have failed for longer than a watch may be silent. A refusal is none, nor is a type that is not served. */
  get outage(): unknown {
    const isLong = performance.now() - this.#lastContact > IDLE_TIMEOUT_MS;
    return isLong && !isRefused(this.#lastError) ? this.#lastError : undefined;
  }

  /** Why the API server has not shown the objects since its last answer that did: it forbids that, or does not serve the type. */
  get refusal(): ApiError | undefined {
    return this.#refusal;
  }

  /** Lists and watches until `signal` is aborted; resolves then. */
  async start(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        if (this.#listNeeded || this.#untilRelist() <= 0 || (await this.#wentBack(signal))) await this.#relist(signal);
        await this.#watch(signal);
      } catch (error) {
        if (!signal.aborted) await this.#recover(error, signal);
      }
    }
    this.#filled.reject(signal.reason);
  }

  /** Whether the API server is at an earlier version than the cache: a watch from there would be silent until it gets there. */
  async #wentBack(signal: AbortSignal): Promise<boolean> {
    if (!this.#cutOff) return false;
    const revision = await this.options.client.revision(this.options.type, { signal });
    this.#cutOff = false;
    return compareResourceVersions(revision, this.#resourceVersion) < 0;
  }

  async #relist(signal: AbortSignal): Promise<void> {
    const { client, type, labelSelector, metadataOnly, observer, onRestore } = this.options;
    const { items, resourceVersion } = await client.list(type, { labelSelector, metadataOnly, signal });
    this.#lastContact = performance.now();
    this.#listedAt = performance.now();
    if (isUnknownKind(this.#refusal)) this.#refusal = undefined;
    const isRelist = this.#hasSynced;
    const isRestored = isRelist && compareResourceVersions(resourceVersion, this.#resourceVersion) < 0;
    if (isRestored) {
      const versions = { resourceVersion, before: this.#resourceVersion };
      this.#logger.warn(versions, "the data of the API server was restored from a backup");
      onRestore?.();
    }

    const objects = items.map((item) => this.#transformed(item));
    await this.options.prepare?.(objects);
    const listed = new Set(objects.map(({ metadata }) => objectKey(metadata)));
    for (const cached of this.list()) {
      const key = objectKey(cached.metadata);
      if (!listed.has(key)) this.#remove(key, cached);
    }
    for (const object of objects) this.#store(object, { isRestored });

    this.#resourceVersion = resourceVersion;
    this.#listNeeded = false;
    this.#cutOff = false;
    this.#hasSynced = true;
    this.#filled.resolve();
    if (isRelist) observer?.relisted();
  }

  /** One watch, until the server ends it or it is silent for too long. */
  async #watch(signal: AbortSignal): Promise<void> {
    const { client, type, labelSelector, metadataOnly, relistIntervalMs = RELIST_INTERVAL_MS } = this.options;
    const idleTimeoutMs = Math.min(IDLE_TIMEOUT_MS, relistIntervalMs);
    const idle = new AbortController();
    const idleTimer = setTimeout(() => idle.abort(), idleTimeoutMs);
    const startedAt = performance.now();
    const timeoutSeconds = this.#watchSeconds();
    let events = 0;
    this.#cutOff = true;
    try {
      const chunks = await client.watch(type, {
        resourceVersion: this.#resourceVersion,
        timeoutSeconds,
        labelSelector,
        metadataOnly,
        signal: AbortSignal.any([signal, idle.signal]),
      });
      for await (const received of watchEvents(chunks)) {
        this.#lastContact = performance.now();
        idleTimer.refresh();
        const kept = received.map((event) => this.#kept(event));
        await this.options.prepare?.(kept.flatMap((event) => (isOfObject(event) ? [event.object] : [])));
        for (const event of kept) {
          if (signal.aborted) return;
          this.#handle(event);
          events++;
        }
        if (events > 0) this.#recovered();
      }
    } catch (error) {
      if (!idle.signal.aborted) throw error;
      this.#logger.info({ idleTimeoutMs }, "watch was silent, listing again");
      this.#listNeeded = true;
      return;
    } finally {
      clearTimeout(idleTimer);
    }
    this.#cutOff = performance.now() - startedAt < timeoutSeconds * 1000 - TIMEOUT_SLACK_MS;
    if (events === 0 && performance.now() - startedAt < SHORTEST_WATCH_MS) throw new Error("the watch ended at once");
    this.#recovered();
  }

  /** 5 to 10 minutes, so that watches do not all end together, but not beyond the next list. */
  #watchSeconds(): number {
    return Math.max(1, Math.floor(Math.min(300 * (1 + Math.random()), this.#untilRelist() / 1000)));
  }

  #untilRelist(): number {
    return this.#listedAt + (this.options.relistIntervalMs ?? RELIST_INTERVAL_MS) - performance.now();
  }

  #handle(event: WatchEvent): void {
    if (event.type === "ERROR") {
      this.#listNeeded = true; // whatever it was, the server will not continue from here
      const { code = 500, reason = "WatchError", message = "the watch failed" } = event.object;
      throw new ApiError(code, reason, message);
    }
    if (event.type !== "BOOKMARK") {
      const { object } = event;
      if (event.type === "DELETED") this.#remove(objectKey(object.metadata), object, { reported: true });
      else this.#store(object);
    }
    this.#resourceVersion = event.object.metadata.resourceVersion;
  }

  /** An event with what the cache keeps of its object. */
  #kept(event: WatchEvent): WatchEvent {
    return isOfObject(event) ? { ...event, object: this.#transformed(event.object) } : event;
  }

  #transformed(object: LiveObject): LiveObject {
    return this.options.transform?.(object) ?? object;
  }

  #store(object: LiveObject, { isRestored = false } = {}): void {
    const key = objectKey(object.metadata);
    const previous = this.get(key);
    if (previous === undefined) {
      this.set(key, object);
      this.#report({ type: "added", object });
    } else if (previous.metadata.uid !== object.metadata.uid) {
      // The end of the old object was not seen, but its successor proves it.
      this.#remove(key, previous);
      this.#store(object);
    } else if (
      previous.metadata.resourceVersion !== object.metadata.resourceVersion ||
      // The same number may come again after a restore, with other contents.
      (isRestored && !isDeepStrictEqual(previous, object))
    ) {
      this.set(key, object);
      this.#report({ type: "modified", object, previous, ...(isRestored && { restored: true }) });
    }
  }

  /** `object` is the last known version of the object, which may be newer than the cached one. */
  #remove(key: string, object: LiveObject, how: { reported?: true } = {}): void {
    const previous = this.get(key);
    if (previous === undefined) return;
    this.set(key, undefined);
    this.#report({ type: "deleted", object, previous, ...how });
  }

  #report(change: ObjectChange): void {
    try {
      this.options.onChange(change);
    } catch (error) {
      const facts = { err: error, key: objectKey(change.object.metadata), change: change.type };
      this.#logger.error(facts, "change handler failed");
    }
  }

  /** Prepares and indexes an object again, if the cache still has it, and tells of it as of a change. */
  async refresh(object: LiveObject): Promise<void> {
    const key = objectKey(object.metadata);
    const again = { ...object };
    await this.options.prepare?.([again]);
    if (this.get(key) !== object) return;
    this.set(key, again);
    this.#report({ type: "modified", object: again, previous: object });
  }

  /** Decides how to continue after an error, and waits for the back-off. */
  async #recover(error: unknown, signal: AbortSignal): Promise<void> {
    // What the server refused will not work from this version; of a broken connection nothing is lost.
    if (isRefused(error)) {
      this.#listNeeded = true;
      if (error.status === 401 || error.status === 403 || isUnknownKind(error)) this.#refusal = error;
    }
    this.#lastError = error;
    const failures = this.#failures++;
    if (isApiError(error, 410)) {
      this.#logger.info({ resourceVersion: this.#resourceVersion }, "version has expired, listing again");
      if (failures === 0) return; // it is how things are meant to go, unless it happens again
    } else {
      const facts = { err: error, reason: errorMessageOf(error) };
      this.#logger[this.#warned ? "debug" : "warn"](facts, "list or watch failed");
      this.#warned = true;
    }
    await timers.setTimeout(exponentialBackoff(failures, BACKOFF), undefined, { signal }).catch(() => {}); // or until the stop
  }

  #recovered(): void {
    if (this.#warned) this.#logger.info({ failures: this.#failures }, "list and watch work again");
    this.#failures = 0;
    this.#warned = false;
    this.#refusal = undefined;
    this.#lastError = undefined;
  }
}

function isOfObject(event: WatchEvent): event is Extract<WatchEvent, { type: "ADDED" | "MODIFIED" | "DELETED" }> {
  return event.type !== "ERROR" && event.type !== "BOOKMARK";
}

function isRefused(error: unknown): error is ApiError {
  return error instanceof ApiError && error.status >= 400 && error.status < 500 && error.status !== 429;
}
