import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { KeyService } from "../../src/automation/key-service";
import { OWN_KEY_SERVICE } from "../../src/config";
import { TestEngine } from "./test-engine";

/* The CLI itself asks the service that it takes for Vault; so any other key service is asked as well. */

const passphrase = { value: "the-passphrase" };
const asked = { passphrase: undefined, keyService: OWN_KEY_SERVICE };

const cleanups: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function startKeyService(value = passphrase.value): Promise<KeyService> {
  const service = await KeyService.startIfUsed({ passphrase: { value }, keyService: undefined }, {});
  if (service === undefined) throw new Error("it has not started");
  cleanups.push(() => service.close());
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
    const environment = service.environmentOf(process.env);
    const engine = await openEngine(undefined, { protection: asked, environment });

    const made = await engine.up("one", { a: "1" });
    const changed = await engine.up("one", { a: "2" });
    expect([made, changed].map(({ failures }) => failures)).toEqual([[], []]);
    expect(await protectionOf(engine, "one")).toMatchObject({ type: "cloud", state: { url: OWN_KEY_SERVICE } });
    const [invocation] = await engine.takeInvocations();
    expect(invocation?.environment).not.toMatch(/PASSPHRASE/);

    expect((await engine.engine.destroy("one")).outcome).toBe("succeeded");
    expect(await engine.backendFiles()).toEqual(expect.not.arrayContaining(["one.json"]));
  });

  it("takes a stack over from the passphrase with its next update, and gives it back", async () => {
    const before = await openEngine();
    await before.up("one", { a: "1" });
    const state = before.settings.backendUrl;

    const environment = (await startKeyService()).environmentOf(process.env);
    const both = { passphrase, keyService: OWN_KEY_SERVICE };
    const after = await openEngine(state, { protection: both, environment });
    expect((await after.up("one", { a: "1" })).changes).toEqual({});
    expect(await protectionOf(before, "one")).toMatchObject({ type: "cloud" });

    const again = await openEngine(state, {
      protection: { passphrase, keyService: undefined },
      environment: (await startKeyService()).environmentOf(process.env),
    });
    expect((await again.up("one", { a: "1" })).changes).toEqual({});
    expect(await protectionOf(before, "one")).toMatchObject({ type: "passphrase" });
  });

  it("that is away fails the update, which says so and makes nothing", async () => {
    const service = await startKeyService();
    const environment = { ...service.environmentOf(process.env), VAULT_MAX_RETRIES: "0" };
    const engine = await openEngine(undefined, { protection: asked, environment });
    await service.close();

    const failed = await engine.up("one", { a: "1" });
    expect(failed).toMatchObject({ outcome: "failed", failures: [{ errorClass: "retryable" }] });
    expect(failed.failures[0]?.message).toMatch(/transit\/decrypt\/kindstack-own.*connection refused/s);
    expect(engine.things.creations).toEqual([]);
  });
});

describe("the key of a passphrase", () => {
  it("is the same in another process, and in none with another passphrase", async () => {
    const first = await openEngine(undefined, {
      protection: asked,
      environment: (await startKeyService()).environmentOf(process.env),
    });
    await first.up("one", { a: "1" });
    const state = first.settings.backendUrl;

    const replica = await openEngine(state, {
      protection: asked,
      environment: (await startKeyService(`${passphrase.value}\n`)).environmentOf(process.env),
    });
    expect(await replica.up("one", { a: "1" })).toMatchObject({ failures: [], changes: {} });

    const stranger = await openEngine(state, {
      protection: asked,
      environment: (await startKeyService("another")).environmentOf(process.env),
    });
    const failed = await stranger.up("one", { a: "2" });
    expect(failed).toMatchObject({ outcome: "failed", failures: [{ errorClass: "retryable" }] });
    expect(failed.failures[0]?.message).toMatch(/the stack was protected with another passphrase/);
  });
});
