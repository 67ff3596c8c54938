import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { LiveObject } from "../../providers/kubernetes/client";
import type { StackEngine, UpdateOptions, UpdateResult } from "../../src/automation/engine";
import { Batches, MAX_BATCH, type Request } from "../../src/runner/batches";
import { objectKey } from "../../stacks/contract/object";
import { sharedStackName, stackOf } from "../../stacks/contract/shared-stack";
import { postgresWriter } from "../../stacks/postgres-writer/kind";
import { updateResult } from "../automation/update-result";

/* Batches between a queue and an engine that are played: what becomes one update, and what comes of whom. */

const SHARED = { partition: "default", number: 0 };
const STACK = sharedStackName(postgresWriter, { partition: "default", number: 0 });
const SIGNAL = new AbortController().signal;

const up = (key: string, refresh = false): Request => ({
  key,
  cached: objectOf(key),
  operation: { type: "up", program: () => {}, refresh },
});
const destroy = (key: string, release = false): Request => ({
  key,
  cached: objectOf(key),
  operation: { type: "destroy", release },
});

function objectOf(key: string): LiveObject {
  const [namespace = "", name = ""] = key.split("/");
  return {
    apiVersion: "demo.yash.com/v1",
    kind: "PostgresWriter",
    metadata: { namespace, name, uid: key, resourceVersion: "1" },
  };
}

class Harness {
  /** Updates as `up 2 targets`. */
  readonly updates: string[] = [];
  readonly enqueued: unknown[] = [];
  readonly recorded: string[] = [];
  failure: Error | undefined;
  /** Objects that are not any more as the cache shows them. */
  readonly changed = new Set<string>();
  unreachable: Error | undefined;
  readonly batches = new Batches({
    kind: postgresWriter,
    engine: {
      up: async (stack: string, _program: unknown, options: UpdateOptions) => this.#update("up", stack, options),
      destroy: async (stack: string, options: UpdateOptions) => this.#update("destroy", stack, options),
      recorded: async () => this.recorded,
      forget: async (stack: string) => void this.updates.push(`forget ${stack}`),
    } as unknown as StackEngine,
    findFresh: async (objects) => {
      if (this.unreachable !== undefined) throw this.unreachable;
      const keys = objects.map(({ metadata }) => objectKey(metadata));
      return new Set(keys.filter((key) => !this.changed.has(key)));
    },
    enqueue: (stack) => this.enqueued.push(stack),
    observe: () => {},
  });

  request({ key, ...request }: Request): Promise<UpdateResult> {
    return this.batches.join(SHARED, key).request(request);
  }

  record(...keys: string[]): void {
    for (const key of keys) {
      const component = `urn:pulumi:${STACK}::kindstack::kindstack:demo.yash.com/v1:PostgresWriter`;
      this.recorded.push(`${component}::${key}`, `${component}$pulumi-nodejs:dynamic/postgres:Row::${key}`);
    }
  }

  #update(operation: "up" | "destroy", stack: string, { targets, refresh, savesOnce }: UpdateOptions): UpdateResult {
    if (this.failure !== undefined) throw this.failure;
    const what = targets?.length ?? stack;
    const how = [savesOnce ? [] : "stepwise", refresh ? "refresh" : []].flat();
    this.updates.push([operation, what, ...how].join(" "));
    return updateResult({ operation });
  }
}

describe("Batches", () => {
  it("makes one update of what waits for a stack", async () => {
    const harness = new Harness();
    const results = Promise.all(["default/a", "default/b", "default/c"].map((k) => harness.request(up(k))));
    await harness.batches.run(SHARED, SIGNAL);
    expect(await results).toMatchObject([{ outcome: "succeeded" }, { outcome: "succeeded" }, { outcome: "succeeded" }]);
    expect(harness.updates).toEqual(["up 3"]);
  });

  it("tells those that wait that nothing was done when the stack is given up", async () => {
    const harness = new Harness();
    const results = Promise.all([up("default/a"), destroy("default/b")].map((one) => harness.request(one)));
    harness.batches.interrupt(SHARED);
    await harness.batches.run(SHARED, SIGNAL);
    expect(await results).toMatchObject([{ outcome: "interrupted" }, { outcome: "interrupted" }]);
    expect(harness.updates).toEqual([]);
  });

  it("does nothing to those that have changed since they were seen, and says so", async () => {
    const harness = new Harness();
    harness.record("default/b", "default/c");
    harness.changed.add("default/a").add("default/b");
    const requests = [up("default/a"), destroy("default/b"), destroy("default/c"), up("default/d")];
    const results = Promise.all(requests.map((request) => harness.request(request)));
    await harness.batches.run(SHARED, SIGNAL);
    const [nothing, done] = [{ outcome: "interrupted" }, { outcome: "succeeded" }];
    expect(await results).toMatchObject([nothing, nothing, done, done]);
    expect(harness.updates).toEqual(["up 1", "destroy 1"]);
  });

  it("does not ask again about those that were seen to be so", async () => {
    const harness = new Harness();
    harness.unreachable = new Error("asked");
    const held = harness.request({ ...up("default/a"), cached: undefined });
    await harness.batches.run(SHARED, SIGNAL);
    expect(await held).toMatchObject({ outcome: "succeeded" });
  });

  it("begins nothing while no one can say whether they have changed", async () => {
    const harness = new Harness();
    harness.unreachable = new Error("away");
    const waiting = harness.request(up("default/a"));
    await Promise.all([expect(waiting).rejects.toThrow("away"), harness.batches.run(SHARED, SIGNAL)]);
    expect(harness.updates).toEqual([]);
  });

  it("does creations, repairs and deletions in one batch, each in the way that it needs", async () => {
    const harness = new Harness();
    harness.record("default/b", "default/c", "default/d", "default/kept");
    const requests = [up("default/a"), up("default/b", true), destroy("default/c"), destroy("default/d", true)];
    const results = Promise.all(requests.map((request) => harness.request(request)));
    await harness.batches.run(SHARED, SIGNAL);
    await results;
    expect(harness.updates).toEqual(["up 1", "up 2 refresh", "destroy 1", "destroy 1"]);
  });

  it("removes the stack with the last object in it, and starts nothing for what is not there", async () => {
    const harness = new Harness();
    harness.record("default/a");
    void harness.request(destroy("default/gone"));
    await harness.batches.run(SHARED, SIGNAL);
    expect(harness.updates).toEqual([]);
    void harness.request(destroy("default/a"));
    await harness.batches.run(SHARED, SIGNAL);
    expect(harness.updates).toEqual([`destroy ${STACK}`]);
  });

  it("leaves what is more than a batch to the next batch, which it asks for", async () => {
    const harness = new Harness();
    for (let index = 0; index <= MAX_BATCH; index++) void harness.request(up(`default/${index}`));
    harness.enqueued.length = 0;
    await harness.batches.run(SHARED, SIGNAL);
    expect(harness.enqueued).toEqual([SHARED]);
    await harness.batches.run(SHARED, SIGNAL);
    expect(harness.updates).toEqual([`up ${MAX_BATCH}`, "up 1"]);
  });

  it("forgets the stack that an object had to itself when the shared one has it, and not before", async () => {
    const harness = new Harness();
    const former = stackOf(postgresWriter, "default/a", undefined);
    harness.failure = new Error("away");
    const failed = harness.request({ ...up("default/a"), former });
    await harness.batches.run(SHARED, SIGNAL);
    await expect(failed).rejects.toThrow("away");
    expect(harness.updates).toEqual([]);
    harness.failure = undefined;
    void harness.request({ ...up("default/a"), former });
    await harness.batches.run(SHARED, SIGNAL);
    expect(harness.updates).toEqual(["up 1", `forget ${former}`]);
  });

  it("deletes an object from both stacks when it goes before it has moved", async () => {
    const harness = new Harness();
    const former = stackOf(postgresWriter, "default/a", undefined);
    harness.record("default/other");
    void harness.request({ ...destroy("default/a"), former });
    await harness.batches.run(SHARED, SIGNAL);
    expect(harness.updates).toEqual([`destroy ${former} stepwise`]);
  });

  describe("that is asked when it is to begin", () => {
    beforeEach(() => void vi.useFakeTimers({ toFake: ["performance"] }));
    afterEach(() => void vi.useRealTimers());
    const request = (harness: Harness, name: string) => void harness.request(up(`default/${name}`));

    it("does not make a single object wait", () => {
      const harness = new Harness();
      expect(harness.batches.gatherMs(SHARED)).toBe(0);
      request(harness, "a");
      expect(harness.batches.gatherMs(SHARED)).toBe(0);
    });

    it("waits for one that is coming, until it has come or does not any more", () => {
      const harness = new Harness();
      const coming = harness.batches.join(SHARED, "default/b");
      expect(harness.batches.gatherMs(SHARED), "before anything waits").toBe(0);
      request(harness, "a");
      expect(harness.batches.gatherMs(SHARED)).toBe(100);
      coming.leave();
      expect(harness.batches.gatherMs(SHARED)).toBe(0);

      const { key, ...wanted } = up("default/c");
      const joined = harness.batches.join(SHARED, key);
      expect(harness.batches.gatherMs(SHARED)).toBe(100);
      vi.advanceTimersByTime(99);
      void joined.request(wanted);
      expect(harness.batches.gatherMs(SHARED)).toBe(100);
    });

    it("does not wait for itself", () => {
      const harness = new Harness();
      const { key, ...wanted } = up("default/a");
      const joined = harness.batches.join(SHARED, key);
      void joined.request(wanted);
      expect(harness.batches.gatherMs(SHARED)).toBe(0);
      joined.leave();
      expect(harness.batches.gatherMs(SHARED)).toBe(0);
    });

    it("waits for the end of a burst", () => {
      const harness = new Harness();
      request(harness, "a");
      request(harness, "b");
      expect(harness.batches.gatherMs(SHARED)).toBe(100);
      vi.advanceTimersByTime(60);
      request(harness, "c");
      expect(harness.batches.gatherMs(SHARED)).toBe(100);
      vi.advanceTimersByTime(100);
      expect(harness.batches.gatherMs(SHARED)).toBe(0);
    });

    it("does not wait for the end of a burst that continues, nor for more than a batch can take", async () => {
      const harness = new Harness();
      request(harness, "a");
      for (let index = 0; index < 20; index++) {
        request(harness, `b-${index}`);
        expect(harness.batches.gatherMs(SHARED), `${index * 50} ms`).toBeGreaterThan(0);
        vi.advanceTimersByTime(50);
      }
      expect(harness.batches.gatherMs(SHARED)).toBe(0);
      expect(harness.batches.gatherMs(SHARED), "the next batch").toBe(100);
      for (let index = 0; index < MAX_BATCH; index++) request(harness, `c-${index}`);
      expect(harness.batches.gatherMs(SHARED)).toBe(0);
    });
  });

  it("begins nothing after a stop, and says so to those who wait", async () => {
    const harness = new Harness();
    const waiting = harness.request(up("default/a"));
    harness.batches.stop();
    expect(await waiting).toMatchObject({ outcome: "interrupted" });
    expect(await harness.request(up("default/b"))).toMatchObject({ outcome: "interrupted" });
    await harness.batches.run(SHARED, SIGNAL);
    expect(harness.updates).toEqual([]);
  });
});
