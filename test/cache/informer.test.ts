import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ApiError, type ListResult, type LiveObject } from "../../providers/kubernetes/client";
import { compareResourceVersions, type ObjectChange } from "../../src/cache/change";
import { Informer, type InformerClient, type InformerOptions } from "../../src/cache/informer";
import { fakeDelay } from "../fake-delay";

const type = { apiVersion: "demo.yash.com/v1", kind: "PostgresWriter", plural: "postgreswriters", namespaced: true };

/** An object of namespace `ns`; the UID follows from the name unless it is given. */
function object(name: string, resourceVersion: number, extra: { uid?: string; country?: string } = {}): LiveObject {
  return {
    apiVersion: type.apiVersion,
    kind: type.kind,
    metadata: { namespace: "ns", name, uid: extra.uid ?? `uid-${name}`, resourceVersion: String(resourceVersion) },
    spec: { country: extra.country ?? "fr" },
  };
}

function line(event: string, object: unknown): Uint8Array {
  return Buffer.from(`${JSON.stringify({ type: event, object })}\n`);
}

/** One watch, whose chunks the test sends. */
class FakeWatch {
  readonly #chunks: Uint8Array[] = [];
  #wake = () => {};
  #end: { error?: unknown } | undefined;

  constructor(
    readonly resourceVersion: string,
    readonly timeoutSeconds: number,
    readonly signal: AbortSignal,
  ) {
    signal.addEventListener("abort", () => this.#finish({ error: signal.reason }));
  }

  async send(...chunks: Uint8Array[]): Promise<void> {
    this.#chunks.push(...chunks);
    this.#wake();
    await settled();
  }

  async end(error?: unknown): Promise<void> {
    this.#finish(error === undefined ? {} : { error });
    await settled();
  }

  #finish(end: { error?: unknown }): void {
    this.#end ??= end;
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    while (true) {
      const chunk = this.#chunks.shift();
      if (chunk !== undefined) yield chunk;
      else if (this.#end && "error" in this.#end) throw this.#end.error;
      else if (this.#end) return;
      else
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
    }
  }
}

/** The two calls of the client: lists are answered from `lists` (the last one stays), watches are opened unless refused. */
class FakeApi implements InformerClient {
  lists: (ListResult | Error)[] = [];
  listCalls = 0;
  /** What {@link revision} gives; as new as can be unless it is set. */
  latestRevision = "999999";
  revisionCalls = 0;
  readonly watches: FakeWatch[] = [];
  refusals: Error[] = [];
  labelSelectors: (string | undefined)[] = [];

  async list(_type: unknown, options: { labelSelector?: string } = {}): Promise<ListResult> {
    this.listCalls++;
    this.labelSelectors.push(options.labelSelector);
    const answer = this.lists.length > 1 ? this.lists.shift() : this.lists[0];
    if (answer instanceof Error) throw answer;
    return answer ?? { items: [], resourceVersion: "1" };
  }

  async watch(
    _type: unknown,
    options: { resourceVersion: string; timeoutSeconds: number; labelSelector?: string; signal: AbortSignal },
  ): Promise<AsyncIterable<Uint8Array>> {
    this.labelSelectors.push(options.labelSelector);
    const refusal = this.refusals.shift();
    if (refusal) throw refusal;
    const watch = new FakeWatch(options.resourceVersion, options.timeoutSeconds, options.signal);
    this.watches.push(watch);
    return watch;
  }

  async revision(): Promise<string> {
    this.revisionCalls++;
    return this.latestRevision;
  }

  /** The watch that was opened last. */
  get latest(): FakeWatch {
    const watch = this.watches.at(-1);
    if (watch === undefined) throw new Error("there is no watch");
    return watch;
  }
}

const settled = () => vi.advanceTimersByTimeAsync(0);

let api: FakeApi;
let stop: AbortController;
let changes: ObjectChange[];
let logs: { level: number; msg: string }[];

beforeEach(() => {
  vi.useFakeTimers({ now: 1_000_000 });
  fakeDelay();
  vi.spyOn(Math, "random").mockReturnValue(0.5);
  api = new FakeApi();
  stop = new AbortController();
  changes = [];
  logs = [];
});

afterEach(async () => {
  stop.abort();
  await settled();
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
  vi.restoreAllMocks();
});

async function started(options: Partial<InformerOptions> = {}): Promise<Informer> {
  const logger = pino({ level: "debug" }, { write: (text: string) => logs.push(JSON.parse(text)) });
  const informer = new Informer({ client: api, type, logger, onChange: (change) => changes.push(change), ...options });
  void informer.start(stop.signal);
  await settled();
  return informer;
}

/** The changes so far as `type name@version`. */
function summary(): string[] {
  return changes.map(({ type, object: { metadata } }) => `${type} ${metadata.name}@${metadata.resourceVersion}`);
}

function warnings(): string[] {
  return logs.filter(({ level }) => level >= 40).map(({ msg }) => msg);
}

describe("list", () => {
  it("fills the cache, reports each object as added and is synced then", async () => {
    api.lists = [{ items: [object("a", 1), object("b", 2)], resourceVersion: "7" }];
    const informer = await started();
    expect(informer.hasSynced).toBe(true);
    await expect(informer.synced).resolves.toBeUndefined();
    expect(summary()).toEqual(["added a@1", "added b@2"]);
    expect(informer.get("ns/a")?.metadata.uid).toBe("uid-a");
    expect(informer.list()).toHaveLength(2);
    expect(informer.resourceVersion).toBe("7");
    expect(api.latest.resourceVersion).toBe("7");
  });

  it("rejects synced when it is stopped before the first list has succeeded", async () => {
    api.lists = [new ApiError(0, "Unreachable", "no answer")];
    const informer = await started();
    stop.abort(new Error("stopped"));
    await expect(informer.synced).rejects.toThrow("stopped");
    expect(informer.hasSynced).toBe(false);
  });

  it("narrows list and watch by the label selector", async () => {
    await started({ labelSelector: "app=kindstack" });
    expect(api.labelSelectors).toEqual(["app=kindstack", "app=kindstack"]);
  });

  it("keeps what transform leaves of an object, from lists and watches", async () => {
    api.lists = [{ items: [object("a", 1)], resourceVersion: "1" }];
    const informer = await started({ transform: ({ spec: _, ...rest }) => rest });
    await api.latest.send(line("ADDED", object("b", 2)));
    expect(informer.list().map((cached) => cached.spec)).toEqual([undefined, undefined]);
  });
});

describe("watch", () => {
  it("follows additions, modifications and deletions", async () => {
    api.lists = [{ items: [object("a", 1)], resourceVersion: "1" }];
    const informer = await started();
    await api.latest.send(
      line("ADDED", object("b", 2)),
      line("MODIFIED", object("a", 3)),
      line("DELETED", object("b", 4)),
    );
    expect(summary()).toEqual(["added a@1", "added b@2", "modified a@3", "deleted b@4"]);
    expect(changes[2]).toMatchObject({ previous: { metadata: { resourceVersion: "1" } } });
    expect(changes[3]).toMatchObject({ previous: { metadata: { resourceVersion: "2" } }, reported: true });
    expect(informer.list().map((cached) => cached.metadata.name)).toEqual(["a"]);
    expect(informer.resourceVersion).toBe("4");
  });

  it("does not report a deletion of what it never knew, nor a version that it has", async () => {
    api.lists = [{ items: [object("a", 1)], resourceVersion: "1" }];
    await started();
    await api.latest.send(line("DELETED", object("x", 2)), line("MODIFIED", object("a", 1)));
    expect(summary()).toEqual(["added a@1"]);
  });

  it("takes the version of a bookmark and reports no change", async () => {
    const informer = await started();
    await api.latest.send(line("BOOKMARK", { kind: type.kind, metadata: { resourceVersion: "99" } }));
    expect(informer.resourceVersion).toBe("99");
    expect(changes).toEqual([]);
  });

  it("reads events however the chunks are cut, even within a character", async () => {
    const bytes = Buffer.concat([
      line("ADDED", object("a", 2, { country: "Åland 🇦🇽" })),
      line("ADDED", object("b", 3, { country: "Côte d'Ivoire" })),
    ]);
    const informer = await started();
    await api.latest.send(...Array.from(bytes, (byte) => Uint8Array.of(byte)));
    expect(informer.get("ns/a")?.spec).toEqual({ country: "Åland 🇦🇽" });
    expect(informer.get("ns/b")?.spec).toEqual({ country: "Côte d'Ivoire" });
  });

  it("leaves out an event that was cut off and asks for it again", async () => {
    await started();
    const cut = line("ADDED", object("b", 3)).subarray(0, 40);
    await api.latest.send(line("ADDED", object("a", 2)), cut);
    await api.latest.end();
    expect(summary()).toEqual(["added a@2"]);
    expect(api.latest.resourceVersion).toBe("2");
    expect(warnings()).toEqual([]);
  });

  it("continues from the last version when the server ends it", async () => {
    await started();
    await api.latest.send(line("ADDED", object("a", 5)));
    await api.latest.end();
    expect(api.watches.map(({ resourceVersion }) => resourceVersion)).toEqual(["1", "5"]);
    expect(api.listCalls).toBe(1);
  });

  it("asks the server for an end after 5 to 10 minutes, but not beyond the next list", async () => {
    await started();
    expect(api.latest.timeoutSeconds).toBe(450);
    stop.abort();
    stop = new AbortController();
    await started({ relistIntervalMs: 60_000 });
    expect(api.latest.timeoutSeconds).toBe(60);
  });

  it("reports the end of the old and the start of the new object when only the UID tells them apart", async () => {
    api.lists = [{ items: [object("a", 1, { uid: "old" })], resourceVersion: "1" }];
    const informer = await started();
    await api.latest.send(line("MODIFIED", object("a", 5, { uid: "new" })));
    expect(summary()).toEqual(["added a@1", "deleted a@1", "added a@5"]);
    expect(changes.map((change) => change.object.metadata.uid)).toEqual(["old", "old", "new"]);
    expect(informer.get("ns/a")?.metadata.uid).toBe("new");
  });

  it("continues, with the cache up to date, when the handler throws", async () => {
    const informer = await started({
      onChange: () => {
        throw new Error("boom");
      },
    });
    await api.latest.send(line("ADDED", object("a", 2)), line("ADDED", object("b", 3)));
    expect(informer.list()).toHaveLength(2);
    expect(api.watches).toHaveLength(1);
    expect(warnings()).toEqual(["change handler failed", "change handler failed"]);
  });

  it("shows the cache as it is after the change while the handler runs", async () => {
    api.lists = [{ items: [object("a", 1)], resourceVersion: "1" }];
    const seen: (string | undefined)[] = [];
    let informer: Informer | undefined;
    informer = await started({ onChange: () => seen.push(informer?.get("ns/a")?.metadata.resourceVersion) });
    await api.latest.send(line("MODIFIED", object("a", 2)), line("DELETED", object("a", 3)));
    expect(seen.slice(1)).toEqual(["2", undefined]);
  });
});

describe("silence", () => {
  it("gives up a watch that has been silent for 2 minutes and lists again", async () => {
    const informer = await started();
    const first = api.latest;
    await vi.advanceTimersByTimeAsync(119_000);
    await first.send(line("BOOKMARK", { metadata: { resourceVersion: "8" } }));
    expect(informer.lastContact).toBe(119_000);
    api.lists = [{ items: [object("missed", 9)], resourceVersion: "9" }];
    await vi.advanceTimersByTimeAsync(119_000);
    expect(api.watches).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(first.signal.aborted).toBe(true);
    expect(api.listCalls).toBe(2);
    expect(api.watches).toHaveLength(2);
    expect(api.latest.resourceVersion).toBe("9");
    expect(summary()).toEqual(["added missed@9"]);
    expect(informer.lastContact).toBe(239_000);
  });

  it("is an outage where lists fail for so long, other than by a refusal", async () => {
    const informer = await started();
    const down = new ApiError(500, "InternalError", "etcdserver: request timed out");
    api.lists = [down];
    await vi.advanceTimersByTimeAsync(120_000);
    expect(informer.outage).toBeUndefined();
    await vi.advanceTimersByTimeAsync(1_000);
    expect([informer.outage, informer.failure]).toEqual([down, down]);
    api.lists = [new ApiError(404, "NotFound", "404 page not found")];
    await vi.advanceTimersByTimeAsync(60_000);
    expect([informer.outage, informer.failure]).toEqual([undefined, undefined]);
    api.lists = [{ items: [], resourceVersion: "9" }];
    await vi.advanceTimersByTimeAsync(60_000);
    expect(informer.outage).toBeUndefined();
  });

  it("lists again after the relist interval and tells the observer", async () => {
    const relisted = vi.fn();
    await started({ relistIntervalMs: 60_000, observer: { relisted } });
    expect(relisted).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(60_000);
    await api.latest.end();
    expect(api.listCalls).toBe(2);
    expect(relisted).toHaveBeenCalledOnce();
  });
});

describe("relist", () => {
  const before = [object("stays", 1), object("changes", 2), object("goes", 3), object("reborn", 4, { uid: "old" })];
  const after = [object("stays", 1), object("changes", 8), object("comes", 7), object("reborn", 9, { uid: "new" })];
  const differences = ["deleted goes@3", "modified changes@8", "added comes@7", "deleted reborn@4", "added reborn@9"];

  it("reports the differences to the cache after an ERROR event of code 410", async () => {
    api.lists = [
      { items: before, resourceVersion: "5" },
      { items: after, resourceVersion: "10" },
    ];
    const informer = await started();
    changes = [];
    await api.latest.send(line("ERROR", { kind: "Status", code: 410, reason: "Expired", message: "too old" }));
    expect(summary()).toEqual(differences);
    for (const change of changes) expect(change).not.toHaveProperty("reported");
    expect(informer.resourceVersion).toBe("10");
    expect(api.latest.resourceVersion).toBe("10");
    expect(warnings()).toEqual([]);
  });

  it("backs off when a fresh version is said to be too old again", async () => {
    const gone = new ApiError(410, "Expired", "too old");
    api.refusals = [gone, gone, gone];
    await started();
    expect(api.listCalls).toBe(2);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(api.listCalls).toBe(3);
    await vi.advanceTimersByTimeAsync(1_999);
    expect(api.listCalls).toBe(3);
    await vi.advanceTimersByTimeAsync(1);
    expect(api.listCalls).toBe(4);
    expect(api.watches).toHaveLength(1);
  });
});

describe("errors", () => {
  it("backs off from 0.5 s to 30 s and warns once, then says that it works again", async () => {
    api.lists = [...Array(9).fill(new ApiError(0, "Unreachable", "no answer")), { items: [], resourceVersion: "1" }];
    const informer = await started();
    for (const ms of [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]) {
      const calls = api.listCalls;
      await vi.advanceTimersByTimeAsync(ms - 1);
      expect(api.listCalls).toBe(calls);
      await vi.advanceTimersByTimeAsync(1);
      expect(api.listCalls).toBe(calls + 1);
    }
    expect(informer.hasSynced).toBe(true);
    expect(warnings()).toEqual(["list or watch failed"]);
    await api.latest.send(line("ADDED", object("a", 2)));
    expect(logs.at(-1)?.msg).toBe("list and watch work again");
  });

  it("continues from the last version after a broken connection", async () => {
    await started();
    await api.latest.send(line("ADDED", object("a", 2)));
    await api.latest.end(new Error("connection reset"));
    await vi.advanceTimersByTimeAsync(500);
    expect(api.latest.resourceVersion).toBe("2");
    expect(api.listCalls).toBe(1);
  });

  it("tells that the API server refuses to show the objects, until it shows them again", async () => {
    const forbidden = new ApiError(403, "Forbidden", "pods is forbidden");
    const informer = await started();
    expect(informer.failure).toBeUndefined();
    api.lists = [forbidden];
    await api.latest.send(line("ERROR", { kind: "Status", code: 403, reason: "Forbidden", message: "no" }));
    await vi.advanceTimersByTimeAsync(500);
    expect(informer.failure).toBe(forbidden);
    api.lists = [new ApiError(0, "Unreachable", "no answer")];
    await vi.advanceTimersByTimeAsync(5_000);
    expect(informer.failure).toBe(forbidden);
    api.lists = [{ items: [], resourceVersion: "9" }];
    await vi.advanceTimersByTimeAsync(30_000);
    await api.latest.send(line("ADDED", object("a", 10)));
    expect(informer.failure).toBeUndefined();
  });

  it("takes a type that is not served for no refusal: its objects cannot be there", async () => {
    api.lists = [new ApiError(404, "NotFound", "404 page not found")];
    expect((await started()).failure).toBeUndefined();
  });

  it.each([
    ["is refused a connection", () => api.latest.end(new Error("connect ECONNREFUSED"))],
    ["is cut off", () => api.latest.end()],
  ])("lists when a watch %s and the API server is at an earlier version then", async (_, cut) => {
    api.lists = [{ items: [object("a", 2), object("new", 9)], resourceVersion: "9" }];
    const restored = vi.fn(() => summary());
    await started({ onRestore: restored });
    await vi.advanceTimersByTimeAsync(60_000);
    changes = [];
    api.latestRevision = "5";
    api.lists = [{ items: [object("a", 2)], resourceVersion: "5" }];
    await cut();
    await vi.advanceTimersByTimeAsync(500);
    expect(restored.mock.results).toEqual([{ type: "return", value: [] }]);
    expect(summary()).toEqual(["deleted new@9"]);
    expect(api.latest.resourceVersion).toBe("5");
  });

  it("asks for no version when a watch has lasted as long as it was to", async () => {
    await started();
    const watch = api.latest;
    for (let second = 0; second < watch.timeoutSeconds; second += 60) {
      await vi.advanceTimersByTimeAsync(60_000);
      await watch.send(line("BOOKMARK", { metadata: { resourceVersion: "8" } }));
    }
    await watch.end();
    expect(api.watches).toHaveLength(2);
    expect([api.listCalls, api.revisionCalls]).toEqual([1, 0]);
  });

  it("reports what has other contents under the same version after a restore", async () => {
    api.lists = [{ items: [object("a", 8), object("b", 8)], resourceVersion: "9" }];
    await started();
    await vi.advanceTimersByTimeAsync(60_000);
    changes = [];
    api.latestRevision = "8";
    api.lists = [{ items: [object("a", 8, { country: "de" }), object("b", 8)], resourceVersion: "8" }];
    await api.latest.end();
    expect(summary()).toEqual(["modified a@8"]);
    expect(changes).toMatchObject([{ restored: true }]);
  });

  it("lists again after an ERROR event of any code", async () => {
    await started();
    await api.latest.send(line("ERROR", { kind: "Status", code: 500, reason: "InternalError", message: "no" }));
    await vi.advanceTimersByTimeAsync(500);
    expect(api.listCalls).toBe(2);
    expect(warnings()).toEqual(["list or watch failed"]);
  });

  it("backs off when watches end as soon as they begin", async () => {
    await started();
    await api.latest.end();
    expect(api.watches).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(500);
    expect(api.watches).toHaveLength(2);
  });

  it("stops within its back-off when it is told to", async () => {
    api.lists = [new ApiError(0, "Unreachable", "no answer")];
    const informer = await started();
    stop.abort(new Error("stopped"));
    await expect(informer.synced).rejects.toThrow("stopped");
    await vi.advanceTimersByTimeAsync(60_000);
    expect(api.listCalls).toBe(1);
  });
});

describe("byIndex", () => {
  const indexers = { country: ({ spec }: LiveObject) => [(spec as { country: string }).country] };
  const names = (objects: LiveObject[]) => objects.map(({ metadata }) => metadata.name);

  it("follows additions, changes of value, successors and deletions", async () => {
    api.lists = [{ items: [object("a", 1), object("b", 1)], resourceVersion: "1" }];
    const informer = await started({ indexers });
    expect(names(informer.byIndex("country", "fr"))).toEqual(["a", "b"]);

    await api.latest.send(line("MODIFIED", object("a", 2, { country: "de" })));
    expect(names(informer.byIndex("country", "fr"))).toEqual(["b"]);
    expect(informer.byIndex("country", "de")).toEqual([object("a", 2, { country: "de" })]);

    await api.latest.send(line("MODIFIED", object("b", 3, { uid: "new", country: "es" })));
    expect(names(informer.byIndex("country", "fr"))).toEqual([]);
    expect(names(informer.byIndex("country", "es"))).toEqual(["b"]);

    await api.latest.send(line("DELETED", object("a", 4, { country: "it" })));
    expect(names(informer.byIndex("country", "de"))).toEqual([]);
    expect(names(informer.byIndex("country", "it"))).toEqual([]);
  });
});

it("compareResourceVersions compares as numbers of any length", () => {
  const sorted = ["0", "9", "10", "99", "100", "9007199254740993", "9007199254740994"];
  expect([...sorted].reverse().sort(compareResourceVersions)).toEqual(sorted);
  expect(compareResourceVersions("42", "42")).toBe(0);
});

it("a clock that is set back does not put off the next list", async () => {
  await started({ relistIntervalMs: 60_000 });
  expect(api.listCalls).toBe(1);

  vi.setSystemTime(Date.now() - 24 * 3_600_000);
  await vi.advanceTimersByTimeAsync(60_000);
  await api.latest.end();

  expect(api.listCalls).toBe(2);
});
