import fs from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { kubernetesLeases, type LeaseRecord } from "../../src/sharding/lease-store";
import { eventually } from "../../src/testing/eventually";
import { resolveBinary } from "../../src/toolchain/resolve";
import { controlPlane } from "../control-plane";
import { useDirectory } from "../directories";
import { TestDatabase, useDatabase } from "../providers/postgres/database";
import { removeUntilGone, untilReady } from "./conditions";
import { namespace, postgresWriter, uniqueName } from "./manifests";
import { apply, client, create, edit, find, remove } from "./objects";
import { TestOperator, useReplicas } from "./operator";

const OBJECTS = 150;
const NAMESPACES = 60;
const SHARDS = 6;
/** In seconds. */
const LEASE = { duration: 8, deadline: 5, retry: 1 };
const LOAD_TIMEOUT_MS = 300_000;

describe("objects of three replicas", () => {
  const leases = uniqueName("leases");
  const namespaces = Array.from({ length: NAMESPACES }, () => uniqueName("load"));
  const directory = useDirectory();
  const database = useDatabase();
  /** As replicas on several machines have it. */
  const state = new TestDatabase(controlPlane().env);
  const store = kubernetesLeases(client, leases, 10_000);
  let table = "";

  /** A script in place of the engine; see engine-witness.mjs. */
  async function witness(): Promise<string> {
    const script = path.join(directory, "kindstack-engine");
    const engine = await resolveBinary("engine");
    const words = [
      process.execPath,
      path.join(__dirname, "engine-witness.mjs"),
      engine,
      path.join(directory, "record"),
    ];
    const command = [...words, path.basename(directory)].map((word) => `'${word}'`).join(" ");
    const version = `case "$1" in --version) exec '${engine}' --version ;; esac`;
    fs.writeFileSync(script, `#!/bin/sh\n${version}\nexec ${command} "$@"\n`, { mode: 0o755 });
    return script;
  }

  /** What the witness wrote: one line an update, with the arguments of the engine. */
  function record(): { free: string; stack: string; engine: string }[] {
    const text = fs.readFileSync(path.join(directory, "record"), "utf8");
    return text
      .trim()
      .split("\n")
      .map((line) => line.split(" "))
      .map(([free = "", , stack = "", ...engine]) => ({ free, stack, engine: engine.join(" ") }));
  }

  beforeAll(async () => {
    await state.open();
    table = await database.createStudents();
    for (const name of [leases, ...namespaces]) await apply(namespace(name));
    const env = {
      PSQL_DBNAME: database.name,
      PULUMI_BACKEND_URL: state.backendUrl(),
      PULUMI_CONFIG_PASSPHRASE: "the same for all",
      KINDSTACK_ENGINE: await witness(),
    };
    const args = ["--concurrency", "2", "--shards", String(SHARDS), "--lease-namespace", leases];
    args.push("--lease-duration", String(LEASE.duration));
    args.push("--renew-deadline", String(LEASE.deadline), "--retry-period", String(LEASE.retry));
    for (const installCrds of [true, false, false]) {
      const replica = new TestOperator({ serverPerUpdate: true, args, env, installCrds });
      replicas.push(replica);
      await replica.start();
    }
  });

  afterAll(async () => {
    for (const name of [leases, ...namespaces]) await remove(namespace(name));
    await state.close();
  });
  const replicas = useReplicas();

  /** Which sessions hold how many shards. */
  async function holders(): Promise<Map<string, number>> {
    const held = new Map<string, number>();
    for (const { name, holder } of await store.list()) {
      if (name.startsWith("kindstack-shard-") && holder !== undefined) held.set(holder, (held.get(holder) ?? 0) + 1);
    }
    return held;
  }

  const sessions = async (): Promise<LeaseRecord[]> =>
    (await store.list()).filter(({ name }) => name.startsWith("kindstack-replica-"));

  async function untilHeldBy(count: number, without: (session: string) => boolean = () => false): Promise<void> {
    await eventually(async () => {
      const held = await holders();
      const total = [...held.values()].reduce((sum, shards) => sum + shards, 0);
      expect([held.size, total, [...held.keys()].some(without)]).toEqual([count, SHARDS, false]);
    }, 60_000);
  }

  const updatesOf = (replica: TestOperator) =>
    record().filter(({ engine }) => engine.includes(replica.workDirectory)).length;

  const lostBy = (replica: TestOperator) => replica.metric("kindstack_shard_transitions_total", { transition: "lost" });

  /** The session that this replica has now: those of the others are in their own logs. */
  const sessionOf = (replica: TestOperator) =>
    [...replica.log.matchAll(/"holder":"([^"]+)"[^\n]*shard acquired/g)].at(-1)?.[1] ?? "none";

  describe("three replicas", () => {
    it("share the shards evenly", async () => {
      await eventually(async () => expect([...(await holders()).values()]).toEqual([2, 2, 2]));
      for (const replica of replicas) expect((await replica.get("/readyz")).status).toBe(200);
      expect(await sessions()).toHaveLength(3);
    });

    it(
      "bring every object to its right end, with no stack updated by two at once, though one is killed and one frozen",
      async ({ annotate }) => {
        const [first, second, third] = replicas as [TestOperator, TestOperator, TestOperator];
        const writers = Array.from({ length: OBJECTS }, (_, index) =>
          postgresWriter(`load-${index}`, { table, age: 1 }, namespaces[index % NAMESPACES]),
        );
        const [changed, deleted] = [writers.slice(0, OBJECTS / 3), writers.slice(-OBJECTS / 6)];
        await Promise.all(writers.map(create));
        await eventually(() => expect(updatesOf(first)).toBeGreaterThan(2), 60_000);
        await eventually(() => expect(first.engineProcesses()).not.toEqual([]));

        const killed = sessionOf(first);
        await first.kill();
        const killedAt = performance.now();
        await eventually(() => expect(first.engineProcesses()).toEqual([]), 2_000);
        await untilHeldBy(2, (session) => session === killed);
        await annotate(`taken over ${Math.round(performance.now() - killedAt)} ms after the kill`);

        // Those that were to be made may all be there by now.
        const others = writers.slice(changed.length, -deleted.length);
        await Promise.all(others.map((object) => edit(object, { spec: { country: "france" } })));
        await eventually(() => expect(second.engineProcesses()).not.toEqual([]));
        const frozen = sessionOf(second);
        const lostBefore = await lostBy(second); // a machine that is busy enough lets a Lease expire as well
        second.freeze();
        const frozenAt = performance.now();
        await Promise.all(changed.map((object) => edit(object, { spec: { age: 2 } })));
        await Promise.all(deleted.map(remove));
        await untilHeldBy(1, (session) => session === frozen);
        // Its own CLI processes are gone before anyone else works on its stacks, though it has not woken up.
        expect(second.engineProcesses()).toEqual([]);
        await annotate(`taken over ${Math.round(performance.now() - frozenAt)} ms after the freeze`);
        await eventually(() => expect(third.engineProcesses()).not.toEqual([]));
        second.thaw();
        await untilHeldBy(2, (session) => session === frozen);

        const kept = writers.filter((object) => !deleted.includes(object));
        await eventually(async () => {
          for (const object of deleted) expect(await find(object)).toBeUndefined();
        }, LOAD_TIMEOUT_MS);
        await eventually(async () => {
          for (const object of kept) await untilReady(object);
        }, LOAD_TIMEOUT_MS);
        const rows = await database.query(`SELECT id, age FROM ${table} ORDER BY id COLLATE "C"`);
        const wanted = kept.map((object) => ({
          id: `${object.metadata.namespace}/${object.metadata.name}`,
          age: changed.includes(object) ? 2 : 1,
        }));
        expect(rows).toEqual(wanted.sort((a, b) => (a.id < b.id ? -1 : 1)));

        expect(record().filter(({ free }) => free !== "alone")).toEqual([]);
        // One that is deleted before its first update has no stack.
        expect(new Set(record().map(({ stack }) => stack)).size).toBeGreaterThanOrEqual(kept.length);
        for (const replica of replicas) expect(updatesOf(replica)).toBeGreaterThan(0);
        expect(await lostBy(second)).toBeGreaterThan(lostBefore);
      },
      2 * LOAD_TIMEOUT_MS,
    );

    it("give back what they have when they are asked to stop, and it is taken at once", async () => {
      const [, second, third] = replicas as [TestOperator, TestOperator, TestOperator];
      const started = performance.now();
      await second.stop();
      await untilHeldBy(1);
      expect(performance.now() - started).toBeLessThan(LEASE.duration * 1000);
      expect(await third.metric("kindstack_shards_held")).toBe(SHARDS);
      const late = postgresWriter(uniqueName("late"), { table });
      await create(late);
      await untilReady(late);
      await removeUntilGone(late);
    });
  });
});
