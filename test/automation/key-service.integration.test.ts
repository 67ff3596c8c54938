import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { KEY_SERVICE, KeyService } from "../../bench/key-service";
import { TestEngine } from "./test-engine";

const passphrase = { value: "the-passphrase" };

const cleanups: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function startKeyService(): Promise<KeyService> {
  const service = await KeyService.start();
  cleanups.push(() => service.stop());
  return service;
}

async function openEngine(...args: Parameters<typeof TestEngine.open>): Promise<TestEngine> {
  const engine = await TestEngine.open(...args);
  cleanups.push(() => engine.close());
  return engine;
}

async function protectionOf({ directory }: TestEngine, stack: string): Promise<{ type: string }> {
  const path = join(directory, "state", ".pulumi", "stacks", "kindstack", `${stack}.json`);
  return JSON.parse(await readFile(path, "utf8")).checkpoint.latest.secrets_providers;
}

describe("a key service in place of a passphrase", () => {
  it("is all that updates need", async () => {
    const service = await startKeyService();
    const engine = await openEngine(undefined, {
      protection: { passphrase: undefined, keyService: KEY_SERVICE },
      environment: { ...process.env, ...service.environment },
    });

    const made = await engine.up("one", { a: "1" });
    const changed = await engine.up("one", { a: "2" });
    expect([made, changed].map(({ failures }) => failures)).toEqual([[], []]);
    expect(await protectionOf(engine, "one")).toMatchObject({ type: "cloud", state: { url: KEY_SERVICE } });
    const [invocation] = await engine.takeInvocations();
    expect(invocation?.environment).not.toMatch(/PASSPHRASE/);

    expect((await engine.engine.destroy("one")).outcome).toBe("succeeded");
    expect(await engine.backendFiles()).toEqual(expect.not.arrayContaining(["one.json"]));
  });

  it("takes a stack over from the passphrase with its next update, and gives it back", async () => {
    const before = await openEngine();
    await before.up("one", { a: "1" });
    const state = before.settings.backendUrl;

    const service = await startKeyService();
    const environment = { ...process.env, ...service.environment };
    const after = await openEngine(state, { protection: { passphrase, keyService: KEY_SERVICE }, environment });
    expect((await after.up("one", { a: "1" })).changes).toEqual({});
    expect(await protectionOf(before, "one")).toMatchObject({ type: "cloud" });

    const again = await openEngine(state, { protection: { passphrase, keyService: undefined }, environment });
    expect((await again.up("one", { a: "1" })).changes).toEqual({});
    expect(await protectionOf(before, "one")).toMatchObject({ type: "passphrase" });
  });

  it("that is away fails the update, which says so and makes nothing", async () => {
    const service = await startKeyService();
    const protection = { passphrase: undefined, keyService: KEY_SERVICE };
    const environment = { ...process.env, ...service.environment, VAULT_MAX_RETRIES: "0" };
    const engine = await openEngine(undefined, { protection, environment });
    await service.stop();

    const failed = await engine.up("one", { a: "1" });
    expect(failed).toMatchObject({ outcome: "failed", failures: [{ errorClass: "retryable" }] });
    expect(failed.failures[0]?.message).toMatch(/transit\/decrypt\/kindstack.*connection refused/s);
    expect(engine.things.creations).toEqual([]);
  });
});
