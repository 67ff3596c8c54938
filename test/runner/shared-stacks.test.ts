import pLimit from "p-limit";
import pino from "pino";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { LiveObject } from "../../providers/kubernetes/client";
import { SharedStacks } from "../../src/runner/shared-stacks";
import type { RunnerEngine } from "../../src/runner/stack-runner";
import { objectKey } from "../../stacks/contract/object";
import { postgresWriter } from "../../stacks/postgres-writer/kind";
import { updateResult } from "../automation/update-result";

/* One slot for all stacks, and an engine whose updates end when the test says so. */

let stop: AbortController;
let stacks: SharedStacks;
let begun: string[];
let finish: () => void;
/** What this replica holds, by the namespace. */
let held: Set<string>;

beforeEach(() => {
  stop = new AbortController();
  begun = [];
  held = new Set(["a", "b"]);
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const holds = (shardKey: string) => [...held].some((namespace) => shardKey.endsWith(`|${namespace}`));
  stacks = new SharedStacks({
    kind: postgresWriter,
    engine: {
      up: async (stack: string) => {
        begun.push(stack.split(".")[1] ?? "");
        await finished;
        return updateResult();
      },
      recorded: async () => [],
      stacks: async () => [],
      isDirect: false,
    } as unknown as RunnerEngine,
    slots: pLimit(1),
    shards: {
      holds,
      work: async (shardKey, signal, work) => (holds(shardKey) ? work(signal) : undefined),
    },
    partitions: undefined,
    find: () => undefined,
    findFresh: async (objects) => new Set(objects.map(({ metadata }) => objectKey(metadata))),
    observe: () => {},
    logger: pino({ level: "silent" }),
    signal: stop.signal,
  });
});
afterEach(async () => {
  finish();
  stop.abort();
  await stacks.stop();
});

function objectIn(namespace: string): LiveObject {
  return {
    apiVersion: "demo.yash.com/v1",
    kind: "PostgresWriter",
    metadata: { namespace, name: "one", uid: namespace, resourceVersion: "1" },
  };
}
function update(namespace: string) {
  return stacks.open(objectIn(namespace)).up(() => {}, { refresh: false, verified: false });
}
const give = (namespace: string) => {
  held.delete(namespace);
  stacks.interrupt((shardKey) => shardKey.endsWith(`|${namespace}`));
};

it("an object that is gone by the time that its failure is known takes no place in a stack", () => {
  const object = objectIn("a");
  stacks.seen(object);
  const { assignment } = stacks.open(object).stack;
  stacks.gone("a/one");
  const failure = { errorClass: "retryable", reason: "Refused", message: "" } as const;
  expect(stacks.backoffGroupOf(object, failure)).toBeUndefined();
  expect(stacks.open({ ...object, metadata: { ...object.metadata, name: "two" } }).stack.assignment).toEqual(
    assignment,
  );
});

describe("a shard that is given back", () => {
  it("does not wait for the updates of others: what has not begun is interrupted, what runs may end", async () => {
    const running = update("a");
    await expect.poll(() => begun).toEqual(["a"]);
    const waiting = update("b");
    give("b");
    expect(await waiting).toMatchObject({ outcome: "interrupted" });
    give("a");
    finish();
    expect(await running).toMatchObject({ outcome: "succeeded" });
    expect(begun).toEqual(["a"]);
  });

  it("begins no update that is asked for after that", async () => {
    const running = update("a");
    give("b");
    expect(await update("b")).toMatchObject({ outcome: "interrupted" });
    finish();
    expect(await running).toMatchObject({ outcome: "succeeded" });
  });
});
