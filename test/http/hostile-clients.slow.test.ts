import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ask, LISTENERS, startListeners, type TestListeners } from "./test-listeners";

const SORTS = [
  "idle",
  "an unfinished handshake",
  "half-open",
  "slow headers",
  "slow bodies",
  "slow bodies of a known user",
  "one request a second",
  "one request a second of a known user",
  "answers that are not read",
  "a flood",
  "a flood of handshakes",
  "a flood that does not wait for answers",
] as const;
/** These make handshakes and requests again and again. */
const FLOODS: readonly string[] = ["a flood", "a flood that does not wait for answers"];
const CONNECTIONS = 1_000;
/** So long a good user asks, again and again: longer than any time-out of a connection that sends nothing. */
const SECONDS = 12;
const THEIRS = "127.0.0.2";

let listeners: TestListeners;
let worker: Worker | undefined;
beforeEach(async () => {
  listeners = await startListeners();
});
afterEach(async () => {
  await worker?.terminate();
  await listeners.close();
});

describe.each(LISTENERS)(`the listener of %s, with ${CONNECTIONS} hostile connections`, (name) => {
  it.each(SORTS)("answers good users, at their address too, and probes: %s", { timeout: 120_000 }, async (sort) => {
    const { served, ca } = listeners;
    const target = served[name];
    const count = FLOODS.includes(sort) ? 200 : CONNECTIONS;
    worker = new Worker(path.join(__dirname, "hostile-clients.mjs"), {
      workerData: { ...target, sort, count, token: "mallory", localAddress: THEIRS },
    });
    let opened = 0;
    worker.on("message", () => void opened++);
    await expect.poll(() => opened).toBeGreaterThanOrEqual(count);

    // A neighbour is answered after those who came before.
    const slowest = { user: 0, neighbour: 0, probe: 0 };
    for (const end = performance.now() + SECONDS * 1000; performance.now() < end; await delay(50)) {
      const [user, neighbour, probe] = await Promise.all([
        ask(target, ca, "127.0.0.1"),
        ask(target, ca, THEIRS),
        ask(served.probes, ca, "127.0.0.1"),
      ]);
      slowest.user = Math.max(slowest.user, user);
      slowest.neighbour = Math.max(slowest.neighbour, neighbour);
      slowest.probe = Math.max(slowest.probe, probe);
    }

    if (process.env.KINDSTACK_SHOW) console.log(name, sort, opened, slowest);
    expect(slowest.user).toBeLessThan(1_000);
    expect(slowest.probe).toBeLessThan(1_000);
  });
});
