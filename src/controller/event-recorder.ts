import os from "node:os";
import timers from "node:timers/promises";
import { LRUCache } from "lru-cache";
import type { Logger } from "pino";
import { isApiError, type KubernetesClient, type LiveObject } from "../../providers/kubernetes/client";
import { microTime } from "../../providers/kubernetes/micro-time";
import { withoutPasswords } from "../../providers/passwords";
import { Budget } from "../queue/budget";

const EVENT = { apiVersion: "events.k8s.io/v1", kind: "Event" } as const;
export const REPORTING_CONTROLLER = "kindstack.dev/operator";
/** The API server counts bytes. */
const NOTE_MAX_BYTES = 1024;
const WORD_MAX_LENGTH = 128;
/** Which of several operators speaks: in a cluster, the host's name is the Pod's. */
const REPORTING_INSTANCE = os.hostname().slice(0, WORD_MAX_LENGTH);
/** Occurrences that follow each other within this time are one series. */
const SERIES_WINDOW_MS = 10 * 60_000;
const SERIES_MAX = 1_000;
const PENDING_MAX = 100;
const FLUSH_TIMEOUT_MS = 5_000;
/** So many at once. After that they are a share of what is written to objects, and a few besides: what a burst waits for comes first. */
const BURST_MAX = 50;
const WRITES_PER_EVENT = 20;
const EVENTS_PER_SECOND = 2;

/** One thing that happened to one object, once or again and again. */
interface Series {
  regarding: ReturnType<typeof referenceTo>;
  type: "Normal" | "Warning";
  reason: string;
  note: string;
  count: number;
  firstAt: number;
  lastAt: number;
  /** The Event that was created for it. */
  name: string | undefined;
}

/**
 * Tells people what happened to an object, as Kubernetes Events (`kubectl describe`, `kubectl events`).
 *
 * Events are a courtesy: writing them neither blocks nor fails anything. What repeats is counted in one Event. They are
 * a bounded share of all writes, for all objects together; when too many wait, the newest are dropped, and warnings last.
 */
export class EventRecorder {
  /** By UID, reason and note. */
  readonly #series = new LRUCache<string, Series>({ max: SERIES_MAX });
  readonly #pending = new Set<Series>();
  #writing: Promise<void> | undefined;
  /** How many may be written by now. */
  readonly #budget = new Budget(BURST_MAX, EVENTS_PER_SECOND);
  /** Ends the wait for it, and all that would follow. */
  readonly #flushing = new AbortController();

  constructor(private readonly options: { client: Pick<KubernetesClient, "create" | "mergePatch">; logger: Logger }) {}

  /**
   * Records that something happened to `object` and returns at once.
   *
   * @param reason why, in CamelCase, for machines
   * @param text what, for people; cut to 1024 bytes
   */
  event(object: LiveObject, type: "Normal" | "Warning", reason: string, text: string): void {
    const note = truncated(withoutPasswords(text), NOTE_MAX_BYTES);
    const key = JSON.stringify([object.metadata.uid, reason, note]);
    const now = Date.now();
    const known = this.#series.peek(key);
    const continued = known !== undefined && now - known.lastAt <= SERIES_WINDOW_MS;
    const series: Series = continued
      ? known
      : { regarding: referenceTo(object), type, reason, note, firstAt: now, lastAt: now, count: 0, name: undefined };
    series.count++;
    series.lastAt = now;
    this.#series.set(key, series);

    this.#pending.add(series);
    if (this.#pending.size > PENDING_MAX) this.#drop();
    this.#writing ??= this.#writeAll();
  }

  /** Counts a write to an object: Events are a share of them. */
  wrote(): void {
    this.#budget.earn(1 / WRITES_PER_EVENT);
  }

  /** What was last recorded of the object of this UID, the newest first; times are ISO 8601. */
  reported(uid: string) {
    return [...this.#series.values()]
      .filter(({ regarding }) => regarding.uid === uid)
      .map(({ lastAt, type, reason, note, count }) => {
        return { time: new Date(lastAt).toISOString(), type, reason, note, count };
      });
  }

  /** To be called at the end: from here on, Events are written at any rate. Resolves when all are, or after 5 s. */
  async flush(): Promise<void> {
    this.#flushing.abort();
    const written = new AbortController();
    await Promise.race([this.#writing, pause(FLUSH_TIMEOUT_MS, written.signal)]);
    written.abort();
  }

  #drop(): void {
    const pending = [...this.#pending];
    const dropped = pending.findLast(({ type }) => type === "Normal") ?? (pending.at(-1) as Series);
    this.#pending.delete(dropped);
    const { reason, regarding } = dropped;
    this.options.logger.debug({ reason, uid: regarding.uid }, "event dropped, too many are waiting");
  }

  /** Waits until one more may be written. */
  async #untilAllowed(): Promise<void> {
    const waitMs = this.#budget.msUntil(1);
    if (waitMs > 0) await pause(waitMs, this.#flushing.signal);
    this.#budget.spend(1);
  }

  async #writeAll(): Promise<void> {
    await Promise.resolve(); // `event` returns before the first request is made
    while (this.#pending.size > 0) {
      await this.#untilAllowed();
      const pending = [...this.#pending];
      const series = pending.find(({ type }) => type === "Warning") ?? (pending[0] as Series);
      this.#pending.delete(series);
      try {
        await this.#write(series);
      } catch (error) {
        this.options.logger.debug({ err: error, reason: series.reason }, "event not written");
      }
    }
    this.#writing = undefined;
  }

  async #write(series: Series): Promise<void> {
    if (series.name !== undefined) {
      try {
        await this.options.client.mergePatch(EVENT, series.name, eventNamespace(series), { series: seriesOf(series) });
        return;
      } catch (error) {
        if (!isApiError(error, 404)) throw error; // else it has expired
      }
    }
    const reason = series.reason.slice(0, WORD_MAX_LENGTH);
    const created = await this.options.client.create({
      ...EVENT,
      metadata: { generateName: `${series.regarding.name}-`, namespace: eventNamespace(series) },
      eventTime: microTime(series.firstAt),
      type: series.type,
      reason,
      action: reason,
      note: series.note,
      regarding: series.regarding,
      reportingController: REPORTING_CONTROLLER,
      reportingInstance: REPORTING_INSTANCE,
      ...(series.count > 1 && { series: seriesOf(series) }),
    });
    series.name = created.metadata.name;
  }
}

/** Waits for so long, or until the signal is aborted. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await timers.setTimeout(ms, undefined, { signal }).catch(() => {});
}

function referenceTo({ apiVersion, kind, metadata }: LiveObject) {
  const { namespace, name, uid, resourceVersion } = metadata;
  return { apiVersion, kind, ...(namespace !== undefined && { namespace }), name, uid, resourceVersion };
}

/** Events of cluster-scoped objects are kept where `kubectl describe` looks for them. */
function eventNamespace({ regarding }: Series): string {
  return regarding.namespace ?? "default";
}

function seriesOf({ count, lastAt }: Series): object {
  return { count, lastObservedTime: microTime(lastAt) };
}

/** `text`, or as much of it as fits in `maxBytes` of UTF-8 with an ellipsis, cut between characters. */
function truncated(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= maxBytes) return text;
  const fitting = bytes.subarray(0, maxBytes - Buffer.byteLength("…"));
  return `${new TextDecoder().decode(fitting, { stream: true })}…`; // a stream leaves out half of a character
}
