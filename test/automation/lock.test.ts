import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { hostname, userInfo } from "node:os";
import { afterEach, describe, expect, it } from "vitest";
import { isStale, parseLocks } from "../../src/automation/lock";

describe("parseLocks", () => {
  it("finds who holds the locks in the CLI's error", () => {
    const output = `error: the stack is currently locked by 2 lock(s). Either wait for the other process(es) to end or delete the lock file with \`pulumi cancel\`.
  file:///state/.pulumi/locks/organization/kindstack/acme/1f.json: created by root@pod-1 (pid 4711) at 2026-01-01T10:00:00Z
  file:///state/.pulumi/locks/organization/kindstack/acme/2f.json: created by some user@pod-2 (pid 12) at 2026-01-01T10:00:01+01:00
`;
    expect(parseLocks(output)).toEqual([
      {
        user: "root",
        host: "pod-1",
        pid: 4711,
        takenAt: Date.UTC(2026, 0, 1, 10),
        text: "created by root@pod-1 (pid 4711) at 2026-01-01T10:00:00Z",
      },
      {
        user: "some user",
        host: "pod-2",
        pid: 12,
        takenAt: Date.UTC(2026, 0, 1, 9, 0, 1),
        text: "created by some user@pod-2 (pid 12) at 2026-01-01T10:00:01+01:00",
      },
    ]);
  });

  it("finds none where the CLI names none", () => {
    expect(parseLocks("the stack is being updated by another request")).toEqual([]);
  });
});

describe("isStale", () => {
  const started: ChildProcess[] = [];
  afterEach(() => {
    for (const child of started.splice(0)) child.kill("SIGKILL");
  });
  const { username } = userInfo();
  const lockOf = ({ pid = 0 }: ChildProcess, host = hostname(), user = username) => ({
    user,
    host,
    pid,
    takenAt: Date.now(),
    text: "",
  });

  it("says yes when the process has ended", async () => {
    const child = spawn("true");
    await once(child, "exit");
    expect(isStale(lockOf(child))).toBe(true);
  });

  it("says yes when the pid belongs to another program by now", async () => {
    const child = spawn("sleep", ["60"]);
    started.push(child);
    await once(child, "spawn");
    expect(isStale(lockOf(child))).toBe(true);
  });

  it("says no while a Pulumi CLI of that pid lives", async () => {
    const child = spawn("sleep", ["60"], { argv0: "/usr/local/bin/pulumi" });
    started.push(child);
    await once(child, "spawn");
    expect(isStale(lockOf(child))).toBe(false);
  });

  it("says yes when the pid is a thread's by now, as after a container's restart", () => {
    const threads = readdirSync("/proc/self/task").map(Number);
    const thread = threads.find((id) => id !== process.pid);
    expect(thread).toBeGreaterThan(0);
    const [name, named] = [process.title, "pulumi-server"];
    process.title = named;
    try {
      expect(isStale(lockOf({ pid: process.pid } as ChildProcess))).toBe(false);
      expect(isStale(lockOf({ pid: thread } as ChildProcess))).toBe(true);
    } finally {
      process.title = name;
    }
  });

  it("says yes when the Pulumi CLI of that pid started after the lock was taken", async () => {
    const child = spawn("sleep", ["60"], { argv0: "/usr/local/bin/pulumi" });
    started.push(child);
    await once(child, "spawn");
    expect(isStale({ ...lockOf(child), takenAt: Date.now() - 3_600_000 })).toBe(true);
  });

  it("says no to another user's lock on another host: a user runs pulumi there", () => {
    expect(isStale(lockOf(spawn("true"), "laptop", "alice"))).toBe(false);
  });

  it("says yes to a lock of another host, whose pids mean nothing here", async () => {
    const child = spawn("sleep", ["60"], { argv0: "/usr/local/bin/pulumi" });
    started.push(child);
    await once(child, "spawn");
    expect(isStale(lockOf(child, "another-pod"))).toBe(true);
  });
});
