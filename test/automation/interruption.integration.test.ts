import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { UpResult } from "../../src/automation/engine";
import { GoEngine } from "../../src/automation/go-engine";
import { summaryOf, TestEngine } from "./test-engine";
import { Thing } from "./things";

const SUCCEEDED = { summary: { result: "succeeded" }, failures: [] };

describe("an interruption", () => {
  let engine: TestEngine;
  beforeEach(async () => {
    engine = await TestEngine.open();
  });
  afterEach(() => engine.close());

  /** An update that waits in its provider, or is over. */
  async function begin(update: () => Promise<UpResult>, { things } = engine) {
    const { entered, release } = things.holdSlow();
    const updating = update();
    await Promise.race([entered, updating]);
    return { updating, release };
  }

  const locks = async () => (await engine.backendFiles()).filter((file) => /^[0-9a-f-]{36}\.json$/.test(file));

  describe("an update that is aborted", () => {
    // The abort and the step's end race: with nothing behind the step, an update that wins has succeeded.
    const chain = () => {
      let last = new Thing("first", { key: "acme/first", value: "slow" });
      for (let link = 0; link < 200; link++) {
        last = new Thing(`link-${link}`, { key: `acme/link-${link}`, value: "1" }, { dependsOn: last });
      }
    };

    it("finishes the step that runs, ends as interrupted and leaves neither lock nor process; others go on", async () => {
      const abort = new AbortController();
      const mine = await begin(() => engine.engine.up("acme", chain, { signal: abort.signal }));
      const other = await begin(() => engine.up("other", { a: "slow" }));
      abort.abort();
      mine.release();
      other.release();
      expect(await mine.updating).toMatchObject({ interrupted: true });
      expect(await other.updating).toMatchObject({ interrupted: false, summary: { result: "succeeded" } });
      expect(engine.things.live.get("acme/first")).toBe("slow");
      expect(await locks()).toEqual([]);
      expect((await engine.checkpoint("acme")).pending).toEqual([]);
      expect(await engine.up("acme", { first: "2" })).toMatchObject(SUCCEEDED);
      expect(engine.things.live.get("acme/first")).toBe("2");
    });

    it("is not cut off where it is only to stop: its step is told, waited for, and recorded", async () => {
      const stop = new AbortController();
      const { updating, release } = await begin(() => engine.engine.up("acme", chain, { stop: stop.signal }));
      stop.abort(new Error("deleted"));
      expect(engine.things.lastContext?.signal.reason).toEqual(new Error("deleted"));
      expect(engine.things.lastContext?.fence.signal.aborted).toBe(false);
      release();
      expect(await updating).toMatchObject({ interrupted: true, unrecorded: false });
      expect(engine.things.live.get("acme/first")).toBe("slow");
      const { pending, resources } = await engine.checkpoint("acme");
      expect(pending).toEqual([]);
      expect(resources.map(({ urn }) => urn)).toContainEqual(expect.stringMatching(/::first$/));
      expect(await engine.engine.up("acme", chain, { stop: stop.signal })).toMatchObject({ interrupted: true });
    });

    it("starts no process when it was aborted before it began", async () => {
      expect((await engine.up("acme", { a: "1" }, { signal: AbortSignal.abort() })).interrupted).toBe(true);
      expect(await engine.takeStarts()).toEqual([]);
    });
  });

  it("an update that takes too long is ended, and does not block the next one", async () => {
    await engine.up("acme", {}); // else it may be over before there is a state
    const impatient = new GoEngine({ ...engine.options, timeoutMs: 2_000 });
    const program = () => engine.declare("acme", { a: "slow" });
    const { updating, release } = await begin(() => impatient.up("acme", program)); // which a slow machine may not enter
    const result = await updating;
    release();
    const failure = { errorClass: "retryable", reason: "Timeout", message: "the update took longer than 2 s" };
    expect(result).toMatchObject({ summary: { result: "failed" }, failures: [failure] });
    expect((await engine.checkpoint("acme")).pending).toEqual([]);
    expect(await engine.up("acme", { a: "1" })).toMatchObject(SUCCEEDED);
    expect([...engine.things.live]).toEqual([["acme/a", "1"]]);
    expect((await engine.checkpoint("acme")).pending).toEqual([]);
  });

  describe("a process that is killed in the middle of a create", () => {
    async function crash(values: Record<string, string> = { a: "slow" }): Promise<void> {
      const { updating, release } = await begin(() => engine.up("acme", values));
      const write = engine.things.lastContext?.fence;
      process.kill(-(await engine.lastPid()), "SIGKILL");
      const failure = { reason: "Killed", errorClass: "retryable", message: expect.stringContaining("SIGKILL") };
      expect(await updating).toMatchObject({ summary: { result: "failed" }, failures: [failure] });
      expect(() => write?.check()).toThrow(expect.objectContaining({ reason: "UpdateEnded" }));
      release();
      await expect.poll(() => engine.things.live.has("acme/a")).toBe(true);
      expect(engine.errors).toEqual(["Pulumi's engine has ended unexpectedly"]);
    }

    it("leaves a lock and a pending creation: the next update removes both, and adopts what is there", async () => {
      await crash();
      expect(await locks()).toHaveLength(1);
      expect((await engine.checkpoint("acme")).pending).toHaveLength(1);
      // Attributes beside a checkpoint are not written atomically, and an empty one makes the checkpoint unreadable.
      expect((await engine.backendFiles()).filter((file) => file.endsWith(".attrs"))).toEqual([]);

      const again = summaryOf(await engine.up("acme", { a: "slow" }));
      expect(again).toEqual({ result: "succeeded", resourceChanges: { create: 1 } });
      expect(engine.warnings).toEqual(["removed the lock of a dead process"]);
      expect(await locks()).toEqual([]);
      expect((await engine.checkpoint("acme")).pending).toEqual([]);
      expect(engine.things.creations).toEqual(["acme/a", "acme/a"]);
      expect([...engine.things.live]).toEqual([["acme/a", "slow"]]);
    });

    it("leaves no pending creation in the state of an update that no longer has it", async () => {
      await crash();
      await engine.up("acme", { b: "1" });
      expect((await engine.checkpoint("acme")).pending).toEqual([]);
    });

    it("spoils no later update: neither a change, nor a refresh, nor the end", async () => {
      await crash({ a: "slow", b: "1" });
      const changesOf = async (...words: Parameters<TestEngine["up"]>) => summaryOf(await engine.up(...words));
      expect(await changesOf("acme", { a: "slow", b: "1" })).toMatchObject({ result: "succeeded" });
      const changed = await changesOf("acme", { a: "2", b: "1" });
      expect(changed).toEqual({ result: "succeeded", resourceChanges: { update: 1 } });
      engine.things.live.delete("acme/b");
      const repaired = await changesOf("acme", { a: "2", b: "1" }, { refresh: true });
      expect(repaired).toEqual({ result: "succeeded", resourceChanges: { create: 1 } });
      expect(await changesOf("acme", { a: "2", b: "1" })).toEqual({ result: "succeeded", resourceChanges: {} });
      expect(await engine.engine.destroy("acme")).toMatchObject(SUCCEEDED);
      expect([...engine.things.live]).toEqual([]);
    });

    it("also leaves a lock that a destroy removes", async () => {
      await engine.up("acme", { b: "1" });
      await crash({ a: "slow", b: "1" });
      expect(await engine.engine.destroy("acme")).toMatchObject(SUCCEEDED);
      expect(await engine.backendFiles()).toEqual(["meta.yaml"]);
    });
  });

  it.each(["", '{"pid":1,"us'])(
    "half a lock, %j, of a process that was killed or had no room while it wrote it, is removed by the next update",
    async (text) => {
      await engine.up("acme", { a: "1" });
      const directory = join(engine.directory, "state", ".pulumi", "locks", "organization", "kindstack", "acme");
      await mkdir(directory, { recursive: true });
      await writeFile(join(directory, "74444608-23b4-486f-8630-2d111fa7ff08.json.18ea15f47e21fb6a.tmp"), text);
      expect(await engine.up("acme", { a: "2" })).toMatchObject(SUCCEEDED);
      expect(await readdir(directory).catch(() => [])).toEqual([]);
    },
  );

  describe("a lock of a process that lives", () => {
    it("is respected: the update says who has it, and can be tried again", async () => {
      const other = await TestEngine.open(engine.settings.backendUrl);
      const { updating, release } = await begin(() => other.up("acme", { a: "slow" }), other);
      await expect(engine.up("acme", { a: "1" })).rejects.toMatchObject({
        reason: "Locked",
        errorClass: "retryable",
        message: expect.stringMatching(/acme is locked: .*pid \d+/),
      });
      release();
      expect(await updating).toMatchObject(SUCCEEDED);
      await other.close();
    });

    it("need not be there to keep a second update of this process from its stack", async () => {
      const { updating, release } = await begin(() => engine.up("acme", { a: "slow" }));
      await expect(engine.up("acme", { a: "1" })).rejects.toMatchObject({ reason: "Locked", errorClass: "retryable" });
      release();
      expect(await updating).toMatchObject(SUCCEEDED);
    });
  });
});
