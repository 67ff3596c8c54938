import { spawn } from "node:child_process";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { signalGroup } from "../../src/automation/command";
import { Watchdog } from "../../src/automation/watchdog";

const LONG_MS = 20_000;

let errors: string[];
let began: number;
const pids: number[] = [];
beforeEach(() => {
  errors = [];
  began = performance.now();
});
afterEach(() => {
  for (const pid of pids.splice(0)) signalGroup(pid, "SIGKILL");
});

function watchdog(allowedMs: number): Watchdog {
  const dog = new Watchdog({ error: (_fields: object, message: string) => errors.push(message) });
  dog.feed(allowedMs);
  return dog;
}

/** A process group that runs until it is killed; tells how long after the test began that was. */
function start(dog: Watchdog): { ended: Promise<number>; forget: () => void } {
  const child = spawn("/bin/sh", ["-c", "sleep 60 & wait"], { detached: true, stdio: "ignore" });
  const pid = child.pid as number;
  pids.push(pid);
  const forget = dog.watch(pid);
  const ended = new Promise<number>((resolve) => {
    child.once("exit", () => {
      forget();
      resolve(performance.now() - began);
    });
  });
  return { ended, forget };
}

describe("the watchdog of running updates", () => {
  it("kills their process groups when nothing is heard in time", async () => {
    const { ended } = start(watchdog(300));
    expect(await ended).toBeGreaterThanOrEqual(290);
  });

  it("waits longer when it is told so, and no longer than that", async () => {
    const dog = watchdog(LONG_MS);
    const { ended } = start(dog);
    dog.feed(LONG_MS);
    dog.feed(500);
    expect(await ended).toBeGreaterThanOrEqual(490);
  });

  it("kills each of several", async () => {
    const dog = watchdog(300);
    const [first, second] = [start(dog), start(dog)];
    expect(Math.min(await first.ended, await second.ended)).toBeGreaterThanOrEqual(290);
  });

  it("leaves alone what has ended in time, and what comes after it", async () => {
    const dog = watchdog(400);
    start(dog).forget();
    const next = start(dog);
    dog.feed(LONG_MS);
    const first = await Promise.race([next.ended, new Promise((resolve) => setTimeout(resolve, 800, "still runs"))]);
    expect(first).toBe("still runs");
    next.forget();
    expect(errors).toEqual([]);
  });
});
