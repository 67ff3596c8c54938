import os from "node:os";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ApiError, type LiveObject, type Manifest } from "../../providers/kubernetes/client";
import { EventRecorder } from "../../src/controller/event-recorder";
import { fakeDelay } from "../fake-delay";
import { liveObject, tenantObject } from "../objects";

const writer = liveObject({
  ...{ apiVersion: "demo.yash.com/v1", kind: "PostgresWriter", metadata: { namespace: "ns", name: "a" } },
});
const tenant = tenantObject();

interface Created extends Manifest {
  note: string;
  series?: unknown;
}

const created: Created[] = [];
const patched: { name: string; namespace: string | undefined; patch: object }[] = [];
let createError: Error | undefined;
let patchError: Error | undefined;
let logs: { level: number; msg: string }[];
let recorder: EventRecorder;

const client = {
  async create(manifest: Manifest): Promise<LiveObject> {
    if (createError) throw createError;
    created.push(manifest as Created);
    const metadata = { ...manifest.metadata, name: `event-${created.length}`, uid: "u", resourceVersion: "1" };
    return { ...manifest, metadata };
  },
  async mergePatch(_type: unknown, name: string, namespace: string | undefined, patch: object): Promise<LiveObject> {
    if (patchError) throw patchError;
    patched.push({ name, namespace, patch });
    return writer;
  },
};

beforeEach(() => {
  vi.useFakeTimers({ now: Date.parse("2026-01-02T03:04:05.678Z") });
  fakeDelay();
  created.length = patched.length = 0;
  createError = patchError = undefined;
  logs = [];
  const logger = pino({ level: "debug" }, { write: (text: string) => logs.push(JSON.parse(text)) });
  recorder = new EventRecorder({ client, logger });
});

afterEach(() => {
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
  vi.restoreAllMocks();
});

async function record(object = writer, message = "2 resources created"): Promise<void> {
  recorder.event(object, "Normal", "Updated", message);
  await recorder.flush();
}

function recordMany(count: number, what = "message"): void {
  for (let i = 0; i < count; i++) recorder.event(writer, "Normal", "Updated", `${what} ${i}`);
}
const warn = (message: string) => recorder.event(writer, "Warning", "UpdateFailed", message);
const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);

describe("EventRecorder", () => {
  it("writes an events.k8s.io/v1 Event beside the object", async () => {
    warn("table missing");
    await recorder.flush();
    expect(created).toEqual([
      {
        apiVersion: "events.k8s.io/v1",
        kind: "Event",
        metadata: { generateName: "a-", namespace: "ns" },
        eventTime: "2026-01-02T03:04:05.678000Z",
        type: "Warning",
        reason: "UpdateFailed",
        action: "UpdateFailed",
        note: "table missing",
        regarding: { apiVersion: writer.apiVersion, kind: writer.kind, ...writer.metadata },
        reportingController: "kindstack.dev/operator",
        reportingInstance: os.hostname().slice(0, 128),
      },
    ]);
  });

  it("keeps Events of cluster-scoped objects in the namespace default", async () => {
    await record(tenant);
    expect(created[0]).toMatchObject({ metadata: { namespace: "default" }, action: "Updated" });
    expect(created[0]?.regarding).not.toHaveProperty("namespace");
  });

  it("returns before anything is written", () => {
    recorder.event(writer, "Normal", "Updated", "done");
    expect(created).toEqual([]);
    return recorder.flush();
  });

  it("counts a repetition in the series of the first Event", async () => {
    await record();
    vi.setSystemTime(Date.now() + 60_000);
    await record();
    await record();
    expect(created).toHaveLength(1);
    const lastObservedTime = "2026-01-02T03:05:05.678000Z";
    const [event, ...series] = [{ name: "event-1", namespace: "ns" }, { count: 2 }, { count: 3 }];
    expect(patched).toEqual(series.map((one) => ({ ...event, patch: { series: { ...one, lastObservedTime } } })));
  });

  it("writes once what was repeated before it could be written", async () => {
    for (let i = 0; i < 3; i++) recorder.event(writer, "Normal", "Updated", "done");
    await recorder.flush();
    expect(created).toMatchObject([{ series: { count: 3 } }]);
    expect(patched).toEqual([]);
  });

  it("shows no password that a message quotes", async () => {
    await record(writer, "open postgres://u:hunter2@db/state?password=hunter2");
    expect(created).toMatchObject([{ note: "open postgres://u:***@db/state?password=***" }]);
  });

  it("begins a new Event for another object, reason or message", async () => {
    await record(writer);
    await record(tenant);
    await record(writer, "1 resource deleted");
    recorder.event(writer, "Normal", "Repaired", "2 resources created");
    await recorder.flush();
    expect(created).toHaveLength(4);
    expect(patched).toEqual([]);
  });

  it("begins a new Event after 10 minutes without a repetition", async () => {
    await record();
    vi.setSystemTime(Date.now() + 10 * 60_000 + 1);
    await record();
    expect(created).toHaveLength(2);
    expect(created[1]?.series).toBeUndefined();
  });

  it("writes the series again when its Event has expired", async () => {
    await record();
    patchError = new ApiError(404, "NotFound", "gone");
    await record();
    expect(created).toHaveLength(2);
    expect(created[1]?.series).toMatchObject({ count: 2 });
  });

  it("cuts a long note to 1024 bytes between characters", async () => {
    await record(writer, "x".repeat(1024));
    await record(writer, `xx${"é".repeat(1000)}`);
    await record(writer, "🚀".repeat(1000));
    const notes = ["x".repeat(1024), `xx${"é".repeat(509)}…`, `${"🚀".repeat(255)}…`];
    expect(created.map(({ note }) => note)).toEqual(notes);
    for (const { note } of created) expect(Buffer.byteLength(note)).toBeLessThanOrEqual(1024);
  });

  it("logs a failure at debug level and continues", async () => {
    createError = new ApiError(403, "Forbidden", "namespace is terminating");
    await record();
    expect(logs).toMatchObject([{ level: 20, msg: "event not written" }]);
    createError = undefined;
    await record();
    expect(created).toMatchObject([{ series: { count: 2 } }]);
  });

  it("drops the newest when more than 100 wait", async () => {
    recordMany(120);
    await recorder.flush();
    expect(created.map(({ note }) => note)).toEqual(Array.from({ length: 100 }, (_, i) => `message ${i}`));
    expect(logs).toHaveLength(20);
  });

  it("releases what is normal before it drops a warning", async () => {
    warn("a warning that came first");
    recordMany(120);
    warn("a warning that came last");
    await recorder.flush();
    expect(created).toHaveLength(100);
    expect(created.filter(({ note }) => note.startsWith("a warning"))).toHaveLength(2);
  });

  it("writes fifty at once, then two a second, and warnings first", async () => {
    recordMany(60);
    await pass(0);
    expect(created).toHaveLength(50);
    warn("a warning");
    await pass(1_500);
    expect(created.slice(50).map(({ note }) => note)).toEqual(["a warning", "message 50", "message 51"]);
    await pass(60_000);
    expect(created).toHaveLength(61);
  });

  it("writes one more for twenty writes to objects", async () => {
    recordMany(90);
    await pass(0);
    for (let i = 0; i < 400; i++) recorder.wrote();
    await pass(500);
    expect(created).toHaveLength(50 + 20 + 1);
    await recorder.flush();
  });

  it("writes no more than that, however long the writes take", async () => {
    for (let second = 0; second < 100; second++) {
      recordMany(20, `second ${second}`);
      for (let i = 0; i < 20; i++) recorder.wrote();
      await pass(1_000);
    }
    expect(created.length).toBeLessThanOrEqual(50 + 200 + 100);
    await recorder.flush();
  });

  it("allows fifty at once again after a rest", async () => {
    recordMany(50);
    await pass(60_000);
    recordMany(60, "next");
    await pass(0);
    expect(created).toHaveLength(100);
    await recorder.flush();
  });

  it("makes no one wait for that at the end", async () => {
    recordMany(80);
    await recorder.flush();
    expect(created).toHaveLength(80);
  });

  it("forgets the series that was seen least recently when there are more than 1000", async () => {
    await record(writer, "first");
    await record(writer, "second");
    for (let i = 0; i < 998; i++) await record(writer, `message ${i}`);
    await record(writer, "first");
    await record(writer, "one too many");
    await record(writer, "first");
    expect(patched.map(({ name }) => name)).toEqual(["event-1", "event-1"]);
    await record(writer, "second");
    expect(created.at(-1)).toMatchObject({ note: "second" });
    expect(patched).toHaveLength(2);
  });

  it("does not wait for ever for an API server that does not answer", async () => {
    vi.spyOn(client, "create").mockReturnValueOnce(new Promise(() => {}));
    const flushed = vi.fn();
    const recorded = record().then(flushed);
    await pass(4_999);
    expect(flushed).not.toHaveBeenCalled();
    await pass(1);
    await recorded;
  });
});
