import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { output, secret } from "@pulumi/pulumi/output";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { TerminalError } from "../../providers/errors";
import type { DynamicResourceOptions } from "../../providers/resource-options";
import { nameOf } from "../../src/automation/urn";
import { filesUnder } from "../files";
import { testContext } from "../providers/test-context";
import { helloOf, summaryOf, TestEngine, withProgram } from "./test-engine";
import { Thing } from "./things";

describe("the engine", () => {
  let engine: TestEngine;
  let count = 0;
  let stack: string;

  beforeAll(async () => {
    engine = await TestEngine.open();
    return () => engine.close();
  });
  const begin = () => {
    stack = `stack-${++count}`;
  };
  begin();
  afterEach(begin);

  const thingsOf = (name: string) => engine.thingsOf(name);
  const SUCCEEDED = { summary: { result: "succeeded" }, failures: [] };
  const inUse = { resource: "a", reason: "Terminating" };
  const stateOf = async (name: string) => (await engine.engine.exportStack(name)) ?? expect.fail("there is no state");

  describe("up", () => {
    it("creates the stack and what the program registers, and tells what came of it", async () => {
      const result = await engine.up(stack, { a: "1", b: "2" });
      expect(result).toMatchObject({
        summary: { kind: "update", result: "succeeded", resourceChanges: { create: 2 } },
        failures: [],
      });
      const made = result.resources.map(({ name, outputs }) => [name, outputs.value]);
      expect(Object.fromEntries(made)).toEqual({ a: "1", b: "2" });
      expect(+result.summary.endTime).toBeGreaterThanOrEqual(+result.summary.startTime);
      expect(thingsOf(stack)).toEqual({ a: "1", b: "2" });
    });

    it("does nothing when nothing has changed, and still tells of the resources", async () => {
      await engine.up(stack, { a: "1" });
      const result = await engine.up(stack, { a: "1" });
      expect(summaryOf(result)).toEqual({ result: "succeeded", resourceChanges: {} });
      expect(result.resources).toMatchObject([{ name: "a", operation: "same", outputs: { value: "1" } }]);
    });

    it("leaves an entry in the history if it changed something, failed or has a message", async () => {
      const entries = async () => (await engine.engine.history(stack))?.length;
      await engine.up(stack, { a: "1" });
      expect(await entries()).toBe(1);
      await engine.up(stack, { a: "1" });
      await engine.up(stack, { a: "1" }, { refresh: true });
      expect(await entries()).toBe(1);
      await engine.up(stack, { a: "1" }, { message: "requested" });
      expect((await engine.engine.history(stack))?.[0]).toMatchObject({ version: 2, message: "requested" });

      engine.things.live.delete(`${stack}/a`);
      await engine.up(stack, { a: "1" }, { refresh: true });
      await engine.up(stack, { a: "terminal" });
      expect(await entries()).toBe(4);
    });

    it("updates what changed, deletes what is no longer registered, and leaves the rest alone", async () => {
      await engine.up(stack, { kept: "1", changed: "1", dropped: "1" });
      const result = await engine.up(stack, { kept: "1", changed: "2" });
      expect(result.summary.resourceChanges).toEqual({ update: 1, delete: 1 });
      expect(thingsOf(stack)).toEqual({ kept: "1", changed: "2" });
    });

    it("replaces what cannot be changed in place", async () => {
      await engine.engine.up(stack, () => void new Thing("a", { key: `${stack}/old`, value: "1" }));
      const result = await engine.engine.up(stack, () => void new Thing("a", { key: `${stack}/new`, value: "1" }));
      expect(result.summary.resourceChanges).toMatchObject({ replace: 1 });
      expect(result.resources).toMatchObject([{ name: "a", outputs: { key: `${stack}/new` } }]);
      expect(thingsOf(stack)).toEqual({ new: "1" });
    });

    it("does not look for drift unless it is told to", async () => {
      await engine.up(stack, { a: "1" });
      engine.things.live.set(`${stack}/a`, "drifted");
      expect((await engine.up(stack, { a: "1" })).summary.resourceChanges).toEqual({});
    });

    it("repairs with a refresh what was changed or removed from outside", async () => {
      await engine.up(stack, { changed: "1", removed: "1" });
      engine.things.live.set(`${stack}/changed`, "drifted");
      engine.things.live.delete(`${stack}/removed`);
      const result = await engine.up(stack, { changed: "1", removed: "1" }, { refresh: true });
      expect(result).toMatchObject({ summary: { result: "succeeded", resourceChanges: { update: 1, create: 1 } } });
      expect(thingsOf(stack)).toEqual({ changed: "1", removed: "1" });
    });

    it("waits for a deletion that ends later, and tells of it when it has ended", async () => {
      await engine.up(stack, { kept: "1", dropped: "ending" });
      const waiting = await engine.up(stack, { kept: "2" });
      expect(waiting.failures).toMatchObject([{ errorClass: "pending", resource: "dropped" }]);
      expect(waiting.summary.resourceChanges).toEqual({ update: 1 });
      expect((await engine.engine.history(stack))?.[0]).toMatchObject({
        result: "waiting",
        changes: [{ operation: "update", name: "kept" }],
        unfinished: [{ operation: "delete", name: "dropped" }],
      });

      engine.things.live.delete(`${stack}/dropped`);
      const ended = await engine.up(stack, { kept: "2" }, { refresh: true });
      expect(ended.summary).toMatchObject({ result: "succeeded", resourceChanges: { delete: 1 } });
      expect([ended.deleted, ended.gone]).toMatchObject([[], [{ name: "dropped", operation: "delete" }]]);
      const [entry] = (await engine.engine.history(stack)) ?? [];
      expect(entry).toMatchObject({ result: "succeeded", resourceChanges: { delete: 1 } });
      expect(entry?.changes).toEqual([{ operation: "delete", type: "Thing", name: "dropped" }]);
    });

    it("has in its history what was made apart from what failed, and not the stack itself", async () => {
      await engine.up(stack, { a: "terminal" });
      await engine.up(stack, { a: "terminal", b: "1" });
      const unfinished = [{ operation: "create", type: "Thing", name: "a" }];
      expect(await engine.engine.history(stack)).toMatchObject([
        { result: "failed", changes: [{ operation: "create", type: "Thing", name: "b" }], unfinished },
        { result: "failed", changes: [], unfinished },
      ]);
    });

    it.each(["terminal", "retryable", "bug"])("has failed where something else has, with a %s error", async (value) => {
      await engine.up(stack, { dropped: "ending" });
      await engine.up(stack, { refused: value });
      expect((await engine.engine.history(stack))?.[0]?.result).toBe("failed");
    });

    it("tells providers of the work that it is part of, and that it was interrupted", async () => {
      const object = { apiVersion: "acme.example/v1", kind: "Thing", namespace: "default", name: stack, uid: "uid" };
      const context = testContext({ object });
      const { log } = context;
      const interrupt = new AbortController();
      const { entered, release } = engine.things.holdSlow();
      const options = { context, signal: interrupt.signal };
      const updating = engine.up(stack, { a: "slow" }, options);
      await entered;
      const told = engine.things.lastContext;
      expect(told?.object).toEqual(object);
      expect(told?.log).toBe(log);
      expect(told?.signal.aborted).toBe(false);
      interrupt.abort(new Error("enough"));
      expect(told?.signal.reason).toEqual(new Error("enough"));
      expect(() => told?.fence.check()).not.toThrow(); // what is under way may still be finished
      release();
      expect(await updating).toMatchObject({ interrupted: true });
      expect(() => told?.fence.check()).toThrow("has ended");
    });
  });

  describe("a program", () => {
    const thing = (name: string, options?: DynamicResourceOptions) =>
      new Thing(name, { key: `${stack}/${name}`, value: "1" }, options);

    it("has what depends on something made after it", async () => {
      const result = await engine.engine.up(stack, () => {
        const first = thing("first");
        const second = thing("second", { dependsOn: first });
        thing("third", { dependsOn: [first, second] });
      });
      expect(result.failures).toEqual([]);
      const made = engine.things.creations.filter((key) => key.startsWith(`${stack}/`));
      expect(made).toEqual(["first", "second", "third"].map((name) => `${stack}/${name}`));
    });

    it("does not continue to what depends on something that failed, and deletes nothing for that", async () => {
      await engine.up(stack, { dependent: "1" });
      const result = await engine.engine.up(stack, () => {
        const refused = new Thing("refused", { key: `${stack}/refused`, value: "retryable" });
        thing("dependent", { dependsOn: refused });
      });
      expect(result.failures).toMatchObject([{ resource: "refused", reason: "LockTimeout" }]);
      expect(thingsOf(stack)).toEqual({ dependent: "1" });
    });

    it("may give values that a library has wrapped", async () => {
      const result = await engine.engine.up(stack, () => {
        new Thing("a", { key: `${stack}/a`, value: output(Promise.resolve("wrapped")) });
      });
      expect(result.failures).toEqual([]);
      expect(thingsOf(stack)).toEqual({ a: "wrapped" });
    });

    it("may give secrets, which neither state, history, previews, logs nor results have", async () => {
      const program = (value: string) => () => void new Thing("a", { key: `${stack}/a`, value: secret(value) });
      const told: unknown[] = [];
      for (const value of ["canary-1", "canary-2"]) {
        const preview = await engine.engine.preview(stack, program(value));
        expect(preview.changes).toMatchObject([{ name: "a" }]);
        const result = await engine.engine.up(stack, program(value), { refresh: true });
        expect(result.resources).toMatchObject([{ outputs: { value: "[secret]" } }]);
        expect(thingsOf(stack)).toEqual({ a: value });
        told.push(preview, result);
      }
      told.push(await engine.engine.history(stack), await stateOf(stack), engine.warnings, engine.errors);
      expect(JSON.stringify(told)).not.toContain("canary-");
      for (const file of filesUnder(join(engine.directory, "state"))) {
        expect(await readFile(file, "latin1"), file).not.toContain("canary-");
      }
    });

    it.each<[what: string, program: () => unknown, message: RegExp]>([
      ["reads a resource's output", () => thing("a").id, /reads the output "id" of "a".*dependsOn/],
      ["gives an option that it cannot have", () => thing("a", { import: "a" } as never), /option import/],
    ])("is told of it when it %s", async (_what, program, message) => {
      const result = await engine.engine.up(stack, () => void program());
      expect(result.failures).toMatchObject([{ errorClass: "terminal", message: expect.stringMatching(message) }]);
    });

    it("that throws, like a resource that fails, fails nothing in other stacks", async () => {
      const gate = engine.things.holdSlow();
      const slow = engine.up(`${stack}-slow`, { a: "slow" });
      await gate.entered;
      const throwing = engine.engine.up(`${stack}-throwing`, () => {
        throw new TerminalError("Invalid", "spec.size: 7 is too much");
      });
      const failure = { errorClass: "terminal", reason: "Invalid", message: "spec.size: 7 is too much" };
      expect(await throwing).toMatchObject({ summary: { result: "failed" }, failures: [failure] });
      expect((await engine.up(`${stack}-failing`, { a: "terminal" })).summary.result).toBe("failed");
      gate.release();
      expect((await slow).summary.result).toBe("succeeded");
    });
  });

  describe("a failing update", () => {
    it.each([
      ["terminal", "TableNotAllowed", "that table is not allowed"],
      ["retryable", "LockTimeout", "come again later"],
      ["bug", "InternalError", "cannot read properties of undefined"],
    ])("carries the provider's own %s error, its reason and its resource", async (value, reason, message) => {
      const { summary, failures } = await engine.up(stack, { a: value });
      expect(summary.result).toBe("failed");
      const urn = expect.stringMatching(/::a$/);
      expect(failures).toEqual([{ resource: "a", urn, errorClass: value, reason, message }]);
    });

    it("keeps what it did before it failed, and finishes the rest the next time", async () => {
      await engine.up(stack, { a: "1" });
      const failed = await engine.up(stack, { a: "2", b: "retryable" });
      expect(failed.failures).toMatchObject([{ resource: "b" }]);
      const result = await engine.up(stack, { a: "2", b: "1" });
      expect(result).toMatchObject(SUCCEEDED);
      expect(thingsOf(stack)).toEqual({ a: "2", b: "1" });
    });

    it("leaves a state that the next one reads where it skips what depended on something that it deletes", async () => {
      const program = (needed: string, value: string) => () => {
        const first = new Thing(needed, { key: `${stack}/${needed}`, value });
        new Thing("dependent", { key: `${stack}/dependent`, value: "1" }, { dependsOn: first });
      };
      await engine.engine.up(stack, program("a", "1"));
      const failed = await engine.engine.up(stack, program("b", "retryable"));
      expect(failed.failures).toMatchObject([{ resource: "b", reason: "LockTimeout" }]);
      expect(thingsOf(stack)).toEqual({ dependent: "1" });

      expect(await engine.engine.up(stack, program("b", "1"))).toMatchObject(SUCCEEDED);
      expect((await engine.engine.destroy(stack)).failures).toEqual([]);
      expect(thingsOf(stack)).toEqual({});
    });

    it("ends when the predecessor of a resource cannot be deleted, and does the rest", async () => {
      await engine.up(stack, { a: "1", after: "1", undeclared: "1" });
      engine.things.live.set(`${stack}/a`, "in use");
      const program = (value: string) => () => {
        const a = new Thing("a", { key: `${stack}/a`, value });
        new Thing("after", { key: `${stack}/after`, value: "1" }, { dependsOn: a });
        engine.declare(stack, { other: "1" });
      };
      const failed = await engine.engine.up(stack, program("afresh"));
      expect(failed).toMatchObject({ summary: { result: "failed" }, failures: [inUse] });
      expect(thingsOf(stack)).toEqual({ a: "in use", after: "1", other: "1", undeclared: "1" });

      engine.things.live.set(`${stack}/a`, "1");
      expect(await engine.engine.up(stack, program("afresh"))).toMatchObject(SUCCEEDED);
      expect(thingsOf(stack)).toEqual({ a: "afresh", after: "1", other: "1" });
    });

    it("carries the engine's own words where no provider was asked", async () => {
      const result = await engine.engine.up(stack, () => {
        engine.declare(stack, { a: "1" });
        engine.declare(stack, { a: "2" });
      });
      expect(result.failures).toMatchObject([{ errorClass: "retryable", reason: "UpdateFailed" }]);
      expect(result.failures[0]?.message).toContain("Duplicate resource URN");
    });
  });

  describe("destroy", () => {
    it("deletes everything, then the stack with its history: no file of it is left", async () => {
      await engine.up(stack, { a: "1", b: "2" });
      await engine.up(stack, { a: "2", b: "2" });
      const result = await engine.engine.destroy(stack);
      expect(result).toMatchObject({
        summary: { kind: "destroy", result: "succeeded", resourceChanges: { delete: 2 } },
        resources: [],
      });
      expect(thingsOf(stack)).toEqual({});
      expect((await engine.backendFiles()).filter((file) => file.includes(stack))).toEqual([]);
    });

    it("of a stack that does not exist, or with nothing in it, succeeds and changes nothing", async () => {
      const nothingChanged = { result: "succeeded", resourceChanges: {} };
      expect(summaryOf(await engine.engine.destroy(stack))).toEqual(nothingChanged);
      await engine.up(stack, {});
      expect(summaryOf(await engine.engine.destroy(stack))).toEqual(nothingChanged);
    });

    it("that fails keeps the stack with what is left, and succeeds later", async () => {
      await engine.up(stack, { a: "in use", b: "1" });
      const failed = await engine.engine.destroy(stack);
      expect(failed).toMatchObject({ summary: { result: "failed" }, failures: [inUse] });
      expect((await engine.checkpoint(stack)).resources.map(({ urn }) => nameOf(urn))).toContain("a");
      engine.things.live.set(`${stack}/a`, "free");
      expect(await engine.engine.destroy(stack)).toMatchObject({ summary: { result: "succeeded" } });
      expect(thingsOf(stack)).toEqual({});
    });

    it("of what is gone already succeeds, and leaves a name that can be used again", async () => {
      await engine.up(stack, { a: "1" });
      engine.things.live.clear();
      const destroyed = summaryOf(await engine.engine.destroy(stack));
      expect(destroyed).toEqual({ result: "succeeded", resourceChanges: { delete: 1 } });
      const made = summaryOf(await engine.up(stack, { a: "1" }));
      expect(made).toEqual({ result: "succeeded", resourceChanges: { create: 1 } });
    });
  });

  it.each(["no stack", "lock"])(
    "a user's words that read as the engine's (%s) are a failure of their resource",
    async (words) => {
      const failed = { summary: { result: "failed" }, failures: [{ resource: "a", reason: "TableMissing" }] };
      expect(await engine.up(stack, { a: words })).toMatchObject(failed);
      await engine.up(stack, { a: "1" });
      engine.things.live.set(`${stack}/a`, words);
      expect(await engine.engine.destroy(stack)).toMatchObject(failed);
      expect((await engine.checkpoint(stack)).resources.length).toBe(3);
    },
  );

  it("a backend that is gone when an update has something to save is told in its words, and the engine goes on", async () => {
    const folder = join(engine.directory, "state/.pulumi");
    await engine.takeStarts();
    const gate = engine.things.holdSlow();
    const updating = engine.engine.up(stack, () => engine.declare(stack, { a: "slow" }), { sdkRuntime: true });
    const ended = updating.then(({ failures }) => expect.fail(`before it made anything: ${JSON.stringify(failures)}`));
    await Promise.race([gate.entered, ended]);
    await rename(folder, `${folder}-away`);
    await writeFile(folder, "");
    gate.release();
    const { failures } = await updating;
    await rm(folder);
    await rename(`${folder}-away`, folder);
    const messages = failures.map(({ message }) => message).join("\n");
    expect(messages).toContain(`cannot write the state of the stack ${stack}`);
    expect(messages).not.toContain("the engine has failed");
    expect((await engine.up(stack, { a: "slow" })).failures).toEqual([]);
    expect(await engine.takeStarts()).toEqual([]);
  });

  it("a process that claims success and gives no account of it is not believed: neither an update nor a destroy has succeeded", async () => {
    const file = join(engine.directory, "rubbish");
    const script = `echo '${helloOf()}'
n=0; while read -r _; do printf '{"id":%d,"result":{"ok":true}}\\n' $((n = n + 1)); done`;
    await writeFile(file, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    const broken = withProgram(engine, file);
    await engine.up(stack, { a: "1" });
    const results = [await broken.up(stack, () => engine.declare(stack, { a: "2" })), await broken.destroy(stack)];
    for (const { summary, failures } of results) {
      expect(summary.result).toBe("failed");
      expect(failures).toMatchObject([{ reason: "UpdateFailed", message: "the engine does not tell why" }]);
    }
    expect((await engine.checkpoint(stack)).resources).not.toEqual([]);
  });

  it("a program of the engine that is not there is waited for", async () => {
    const starting = withProgram(engine, "/nowhere").up(stack, () => engine.declare(stack, { a: "1" }));
    await expect(starting).rejects.toMatchObject({ reason: "NoEngine", errorClass: "retryable" });
  });

  it("a refresh saves what is found, also where the update then fails", async () => {
    await engine.up(stack, { changed: "1", removed: "1" });
    engine.things.live.set(`${stack}/changed`, "drifted");
    engine.things.live.delete(`${stack}/removed`);
    const result = await engine.up(stack, { changed: "terminal", removed: "terminal" }, { refresh: true });
    expect(result.summary).toMatchObject({ kind: "update", result: "failed", resourceChanges: { delete: 1 } });
    expect(result.resources).toMatchObject([{ name: "changed", outputs: { value: "drifted" } }]);
    expect(thingsOf(stack)).toEqual({ changed: "drifted" });
    expect((await engine.checkpoint(stack)).resources.map(({ urn }) => nameOf(urn))).not.toContain("removed");
  });

  it("a state is exported and imported, and a stack that was destroyed is imported anew", async () => {
    await engine.up(stack, { a: "1" });
    const state = await stateOf(stack);
    await engine.engine.destroy(stack);
    expect(await engine.engine.listStacks()).not.toContainEqual({ name: stack });
    await engine.engine.importStack(stack, state);
    expect(await engine.engine.listStacks()).toContainEqual({ name: stack });
    expect(summaryOf(await engine.up(stack, { a: "1" }))).toEqual({ result: "succeeded", resourceChanges: {} });
  });

  describe("a stack that its object has had", () => {
    const object = { uid: "uid", mustExist: true };
    const message = expect.stringContaining("the stack ");
    const missing = [{ errorClass: "terminal", reason: "StateMissing", message }];
    const destroy = () => engine.engine.destroy(stack, { object });
    const program = () => engine.declare(stack, { a: "1" });

    it("is neither made nor destroyed where it is not there, nor are its resources", async () => {
      engine.things.live.set(`${stack}/a`, "1");
      expect(await engine.up(stack, { a: "2" }, { object })).toMatchObject({ found: false, failures: missing });
      expect(await destroy()).toMatchObject({ summary: { result: "failed" }, found: false, failures: missing });
      expect(await engine.engine.preview(stack, program, { object })).toMatchObject({ changes: [], failures: missing });
      expect(await engine.engine.previewDestroy(stack, { object })).toMatchObject({ changes: [], failures: missing });
      expect(thingsOf(stack)).toEqual({ a: "1" });
      expect(await engine.engine.listStacks()).not.toContainEqual({ name: stack });
      const made = await engine.up(stack, { a: "2" }, { object: { ...object, mustExist: false } });
      expect([made.found, made.failures]).toEqual([false, []]);
      expect((await engine.up(stack, { a: "2" }, { object })).found).toBe(true);
    });

    it("is known to be gone after a destroy, for this object, until it is forgotten", async () => {
      await engine.up(stack, { a: "1" });
      await engine.engine.destroy(stack, { object });
      expect(await destroy()).toMatchObject({ summary: { result: "succeeded" }, found: true });
      expect(await engine.engine.previewDestroy(stack, { object })).toMatchObject({ exists: false, failures: [] });
      const successor = { uid: "successor", mustExist: true };
      expect((await engine.engine.destroy(stack, { object: successor })).failures).toEqual(missing);
      expect((await engine.up(stack, { a: "1" }, { object })).failures).toEqual(missing);
      expect(await engine.engine.listStacks()).not.toContainEqual({ name: stack });
      expect(await engine.engine.history(stack)).toBeUndefined();
      await engine.engine.forgetDestroyed([stack, "another"]);
      expect((await destroy()).failures).toEqual(missing);
      expect((await engine.backendFiles()).filter((name) => name.includes(stack))).toEqual([]);
    });

    it("saves no state before it is removed, where its resources are found again without", async () => {
      await engine.up(stack, { a: "1" });
      await engine.engine.destroy(stack, { object, savesOnce: true });
      expect(thingsOf(stack)).toEqual({});
      expect(await engine.engine.listStacks()).not.toContainEqual({ name: stack });
    });
  });

  describe("a state that cannot be read", () => {
    it("is Unreadable, not a failed update, and the engine goes on with other stacks", async () => {
      await engine.up(stack, { a: "1" });
      await writeFile(join(engine.directory, "state/.pulumi/stacks/kindstack", `${stack}.json`), "rubbish");
      await engine.takeStarts();
      const program = () => engine.declare(stack, { a: "2" });
      const message = expect.stringContaining(`cannot read the state of the stack ${stack}`);
      for (const operation of [
        () => engine.engine.up(stack, program),
        () => engine.engine.preview(stack, program),
        () => engine.engine.previewDestroy(stack),
        () => engine.engine.destroy(stack),
        () => engine.engine.destroy(stack, { release: true }),
      ]) {
        await expect(operation()).rejects.toMatchObject({ reason: "Unreadable", errorClass: "retryable", message });
      }
      expect(thingsOf(stack)).toEqual({ a: "1" });
      expect((await engine.up(`${stack}-other`, { a: "1" })).failures).toEqual([]);
      expect(await engine.takeStarts()).toEqual([]);
      expect(engine.errors).toEqual([]);
    });

    it("is that of another stack, of which nothing is deleted", async () => {
      const [own, other] = [stack, `${stack}-other`];
      for (const name of [own, other]) await engine.up(name, { a: "1" });
      const folder = join(engine.directory, "state/.pulumi/stacks/kindstack");
      const state = await readFile(join(folder, `${own}.json`));
      await writeFile(join(folder, `${own}.json`), await readFile(join(folder, `${other}.json`)));
      const refusal = { reason: "Unreadable", message: expect.stringContaining(`the state of the stack ${other}`) };
      await expect(engine.up(own, {})).rejects.toMatchObject(refusal);
      await expect(engine.engine.destroy(own)).rejects.toMatchObject(refusal);
      expect([thingsOf(own), thingsOf(other)]).toEqual([{ a: "1" }, { a: "1" }]);
      await writeFile(join(folder, `${own}.json`), state);
      expect((await engine.up(own, { a: "2" })).failures).toEqual([]);
    });

    it("is one that is encrypted with another passphrase", async () => {
      const program = () => void new Thing("a", { key: `${stack}/a`, value: secret("canary") });
      await engine.engine.up(stack, program);
      const protection = { passphrase: { value: "another" }, keyService: undefined };
      const other = await TestEngine.open(engine.settings.backendUrl, { protection });
      await expect(other.engine.up(stack, program)).rejects.toMatchObject({
        reason: "Unreadable",
        message: expect.stringContaining("incorrect passphrase"),
      });
      await other.close();
    });

    it("has no lock, once the operation has ended", async () => {
      await engine.up(stack, { a: "1" });
      const checkpoint = join(engine.directory, "state/.pulumi/stacks/kindstack", `${stack}.json`);
      const state = await readFile(checkpoint);
      await writeFile(checkpoint, "rubbish");
      await expect(engine.up(stack, { a: "2" })).rejects.toMatchObject({ reason: "Unreadable" });
      await writeFile(checkpoint, state);
      expect(await engine.up(stack, { a: "2" })).toMatchObject(SUCCEEDED);
      expect(await engine.engine.unlock(stack)).toEqual([]);
    });
  });

  it("does not destroy what is protected, which the failure says, and releases it all the same", async () => {
    await engine.up(stack, { a: "1" });
    const state = await stateOf(stack);
    for (const resource of state.deployment.resources ?? []) resource.protect = nameOf(resource.urn) === "a";
    await engine.engine.importStack(stack, state);
    const refused = await engine.engine.destroy(stack);
    const message = expect.stringContaining("Thing a cannot be deleted because it is protected");
    expect(refused.failures).toMatchObject([{ message }]);
    expect(thingsOf(stack)).toEqual({ a: "1" });
    const released = await engine.engine.destroy(stack, { release: true });
    expect(released.summary.result).toBe("succeeded");
    expect(thingsOf(stack)).toEqual({ a: "1" });
    expect((await engine.engine.exportStack(stack))?.deployment.resources ?? []).toEqual([]);
  });

  describe("the engine's process", () => {
    it("is the same for all operations, the first of a stack included", async () => {
      await engine.takeStarts();
      await engine.up(stack, { a: "1" });
      await engine.up(stack, { a: "2" }, { refresh: true });
      await engine.engine.destroy(stack);
      expect(await engine.takeStarts()).toEqual([]);
    });

    it("gets no secret in its arguments, and none of the providers' in its environment", async () => {
      const fresh = await TestEngine.open(undefined, { timing: { operationsPerProcess: 1 } });
      await fresh.up(stack, { a: "1" });
      await fresh.up(stack, { a: "2" });
      const [{ args, environment } = { args: "", environment: "" }] = await fresh.takeStarts();
      await fresh.close();
      expect(args).toContain("--session=");
      expect(args).not.toMatch(/the-passphrase|psql-secret/);
      expect(environment).toContain("PULUMI_CONFIG_PASSPHRASE=the-passphrase");
      expect(environment).not.toMatch(/^(PSQL_|PG[A-Z]|KUBECONFIG)/m);
      expect(environment).not.toMatch(/psql-secret|pg-secret/);
    });
  });
});
