import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pino from "pino";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { ProviderHost } from "../../providers/host/server";
import { providersOf } from "../../providers/index";
import type { LiveObject } from "../../providers/kubernetes/client";
import { StackEngine, type UpdateResult } from "../../src/automation/engine";
import type { Pulumi } from "../../src/automation/pulumi";
import { openWorkspace } from "../../src/automation/workspace";
import { Batches, type Request } from "../../src/runner/batches";
import { membersOf } from "../../src/runner/members";
import { StaleMembers } from "../../src/runner/stale-members";
import { resolvePulumi } from "../../src/toolchain/pulumi";
import { ownerDescription, parseObject } from "../../stacks/contract/kind";
import { objectKey, stackName } from "../../stacks/contract/object";
import { type StackAssignment, sharedStackName } from "../../stacks/contract/shared-stack";
import { postgresWriter } from "../../stacks/postgres-writer/kind";
import { controlPlane } from "../control-plane";
import { childrenOf } from "../e2e/processes";
import { TestDatabase } from "../providers/postgres/database";

/* Batches of PostgresWriters with the real CLI and a real database; the queue and the API server are left out. */

const SHARED = { partition: "school", number: 0 };
const STACK = sharedStackName(postgresWriter, { partition: "school", number: 0 });
const SIGNAL = new AbortController().signal;

const database = new TestDatabase(controlPlane().env);
let host: ProviderHost;
let directory = "";
let engine: StackEngine;
let batches: Batches;
let pulumi: Pulumi;
let table = "";

beforeAll(async () => {
  await database.open();
  host = await ProviderHost.start(providersOf());
});
afterAll(async () => {
  host.stop();
  await database.close();
});
beforeEach(async () => {
  table = await database.createStudents();
  directory = await mkdtemp(join(tmpdir(), "kindstack-batch-"));
  const workspace = await openWorkspace({
    pulumi: await resolvePulumi({}),
    workDirectory: join(directory, "work"),
    backendUrl: `file://${join(directory, "state")}`,
    protection: { passphrase: { value: "the-passphrase" }, keyService: undefined },
    environment: process.env,
    attachment: host.attachment,
    log: { error: () => {} },
  });
  pulumi = workspace.pulumi;
  const log = { warn: () => {} };
  engine = new StackEngine({ workspace, host, timeoutMs: 60_000, log });
  batches = new Batches({
    kind: postgresWriter,
    engine,
    findFresh: async (objects) => new Set(objects.map(({ metadata }) => objectKey(metadata))),
    enqueue: () => {},
    observe: () => {},
  });
});
/** Kills the processes that run updates. */
function killPulumi(): void {
  for (const { pid, command } of childrenOf(process.pid)) {
    if (command.includes("pulumi")) process.kill(pid, "SIGKILL");
  }
}
afterEach(async () => {
  await pulumi.close();
  await rm(directory, { recursive: true, force: true });
});

function objectOf(name: string, spec: object = {}): LiveObject {
  return {
    apiVersion: "demo.yash.com/v1",
    kind: "PostgresWriter",
    metadata: { name, namespace: "school", uid: `uid-${name}`, resourceVersion: "1", generation: 1 },
    spec: { table, name: "alex", age: 23, country: "canada", ...spec },
  };
}

function programOf(name: string, spec: object = {}, uid = `uid-${name}`): () => void {
  const object = parseObject(postgresWriter, objectOf(name, spec));
  const owner = { uid, description: ownerDescription(postgresWriter, `school/${name}`) };
  const context = { owner, cluster: "the-cluster", owned: [], recorded: new Set<string>(), watched: [] };
  return () => void postgresWriter.program(object, context);
}

function up(name: string, spec: object = {}, refresh = false, uid?: string): Request {
  const operation = { type: "up" as const, program: programOf(name, spec, uid), refresh };
  return { key: `school/${name}`, cached: objectOf(name, spec), operation };
}

function destroy(name: string, release = false): Request {
  return { key: `school/${name}`, cached: objectOf(name), operation: { type: "destroy", release } };
}

/** One update of the stack with these requests; what came of each. */
function batch(...requests: Request[]): Promise<UpdateResult[]> {
  return turnOf(SHARED, ...requests);
}

async function turnOf(stack: StackAssignment, ...requests: Request[]): Promise<UpdateResult[]> {
  const results = Promise.all(requests.map((request) => batches.join(stack, request.key).request(request)));
  results.catch(() => {});
  await batches.run(stack, SIGNAL);
  return results;
}

const outcomes = (results: UpdateResult[]) =>
  results.map(({ outcome, failures }) => failures.map(({ reason }) => reason).join() || outcome);
const rows = async () =>
  (await database.query<{ id: string; age: number }>(`SELECT id, age FROM ${table} ORDER BY id`)).map(
    ({ id, age }) => `${id} ${age}`,
  );
const records = async () =>
  (await database.query("SELECT key FROM kindstack_ownership.rows WHERE table_name = $1", [table])).length;
const stacks = async () =>
  (await readdir(join(directory, "state"), { recursive: true })).filter((file) => /stacks\/.*\.json$/.test(file));

describe("a batch", () => {
  it("makes what can be made, and the failure of one is that one's alone", async () => {
    await database.query(`INSERT INTO ${table} (id) VALUES ('school/taken')`);
    const results = await batch(
      up("alex"),
      up("nowhere", { table: "no_such_table" }),
      up("taken"),
      up("blake", { age: 1 }),
    );
    expect(outcomes(results)).toEqual(["succeeded", "TableMissing", "RowConflict", "succeeded"]);
    expect(results.map(({ changes }) => changes)).toEqual([{ create: 1 }, {}, {}, { create: 1 }]);
    expect(await rows()).toEqual(["school/alex 23", "school/blake 1", "school/taken null"]);

    await database.query(`DELETE FROM ${table} WHERE id = 'school/taken'`);
    const again = await batch(up("alex"), up("nowhere"), up("taken"), up("blake", { age: 1 }));
    expect(again.map(({ outcome, changes }) => [outcome, changes])).toEqual([
      ["succeeded", {}],
      ["succeeded", { create: 1 }],
      ["succeeded", { create: 1 }],
      ["succeeded", {}],
    ]);
  });

  it("is tried again without whom the engine refused before its end", async () => {
    const refused: Request = {
      key: "school/refused",
      cached: objectOf("refused"),
      operation: { type: "up", refresh: false, program: () => Promise.reject(new TypeError("cannot read properties")) },
    };
    const results = await batch(up("alex"), refused, up("blake"));
    expect(outcomes(results)).toEqual(["succeeded", "InternalError", "succeeded"]);
    expect(await rows()).toEqual(["school/alex 23", "school/blake 23"]);
  });

  it("creates, changes, repairs, deletes and releases in one batch, and leaves the others alone", async () => {
    await batch(...["changed", "drifted", "deleted", "released", "kept"].map((name) => up(name)));
    await database.query(`UPDATE ${table} SET age = 99 WHERE id <> 'school/changed'`);
    const results = await batch(
      up("new"),
      up("changed", { age: 24 }),
      up("drifted", {}, true),
      up("compared before it is there", {}, true),
      destroy("deleted"),
      destroy("released", true),
      destroy("never there"),
    );
    expect(new Set(outcomes(results))).toEqual(new Set(["succeeded"]));
    expect(await rows()).toEqual([
      "school/changed 24",
      "school/compared before it is there 23",
      "school/drifted 23",
      "school/kept 99",
      "school/new 23",
      "school/released 99",
    ]);
    expect(await records()).toBe(5);
  });

  it("removes the stack with all that belongs to it when its last object goes", async () => {
    await batch(up("alex"), up("blake"));
    expect(await stacks()).toHaveLength(1);
    await batch(destroy("alex"));
    expect(await rows()).toEqual(["school/blake 23"]);
    await batch(destroy("blake"));
    expect(await rows()).toEqual([]);
    const left = await readdir(join(directory, "state"), { recursive: true, withFileTypes: true });
    expect(left.filter((entry) => entry.isFile() && entry.name.includes("school"))).toEqual([]);
  });

  it("keeps an object whose deletion is refused, and only that one", async () => {
    await batch(up("alex"), up("blake"), up("casey"));
    await database.query(
      `CREATE TABLE ${table}_refs (id text REFERENCES ${table}); INSERT INTO ${table}_refs VALUES ('school/blake')`,
    );
    const [alex, blake] = await batch(destroy("alex"), destroy("blake"));
    expect([alex?.outcome, blake?.outcome]).toEqual(["succeeded", "failed"]);
    expect(await rows()).toEqual(["school/blake 23", "school/casey 23"]);
    await database.query(`DROP TABLE ${table}_refs`);
    expect(outcomes(await batch(destroy("blake"), destroy("casey")))).toEqual(["succeeded", "succeeded"]);
    expect(await rows()).toEqual([]);
  });
});

describe("a stack that an object had to itself", () => {
  const own = stackName(postgresWriter, "school/alex");

  it("is left for the shared one: the row stays as it is and is deleted from there", async () => {
    await engine.up(own, programOf("alex"));
    const stack = () => database.query(`SELECT id, name, age, country FROM ${table}`);
    const before = await stack();

    expect(outcomes(await batch({ ...up("alex"), former: own }))).toEqual(["succeeded"]);
    expect(await stack()).toEqual(before);
    expect(await records()).toBe(1);
    expect(await engine.recorded(own)).toBeUndefined();
    // Once more, as after a crash before that was written down.
    expect(outcomes(await batch({ ...up("alex"), former: own }))).toEqual(["succeeded"]);

    await batch(destroy("alex"));
    expect(await rows()).toEqual([]);
    expect(await records()).toBe(0);
  });

  it.each(["before", "after"])("is deleted with its object that goes %s the shared one has it", async (when) => {
    await engine.up(own, programOf("alex"));
    if (when === "after") await batch(up("alex")); // and then the crash, before the former is forgotten
    expect(outcomes(await batch({ ...destroy("alex"), former: own }))).toEqual(["succeeded"]);
    expect(await rows()).toEqual([]);
    expect(await records()).toBe(0);
    expect(await stacks()).toEqual([]);
  });
});

describe("a member whose object was made again in another stack", () => {
  const OTHER = { partition: "school", number: 1 };
  const other = sharedStackName(postgresWriter, OTHER);
  const again: LiveObject = {
    ...objectOf("alex"),
    metadata: { ...objectOf("alex").metadata, uid: "uid-again" },
    status: { stack: { name: other, program: "p" } },
  };
  const ownership = (...tables: string[]) =>
    database.query(
      `SELECT key, owner, incarnation FROM kindstack_ownership.rows WHERE table_name = ANY($1)
       ORDER BY array_position($1, table_name), key`,
      [tables],
    );
  const membersOfStack = async (stack: string) => membersOf((await engine.recorded(stack)) ?? []).sort();
  let present: Map<string, LiveObject>;
  let enqueued: StackAssignment[];
  let stale: StaleMembers;
  beforeEach(async () => {
    present = new Map();
    enqueued = [];
    stale = new StaleMembers({
      kind: postgresWriter,
      engine,
      find: (key) => present.get(key),
      findFresh: async (objects) => new Set(objects.map(({ metadata }) => objectKey(metadata))),
      enqueue: (stack) => enqueued.push(stack),
      logger: pino({ level: "silent" }),
    });
  });

  it("leaves the state of the former stack, once its object is in the other, and nothing else changes", async () => {
    await batch(up("alex"), up("blake"));
    await stale.look(SHARED, (key) => key === "school/blake", SIGNAL);
    await stale.remove(SHARED, SIGNAL);
    expect(await membersOfStack(STACK)).toEqual(["school/alex", "school/blake"]); // it may come back

    expect(outcomes(await turnOf(OTHER, up("alex", { age: 24 }, false, "uid-again")))).toEqual(["succeeded"]);
    const [owned, before] = [await ownership(table), await rows()];
    expect(enqueued).toEqual([]);
    present.set("school/alex", again);
    stale.seen(again);
    expect(enqueued).toEqual([SHARED]);
    await stale.remove(SHARED, SIGNAL);
    expect(await membersOfStack(STACK)).toEqual(["school/blake"]);
    expect(await membersOfStack(other)).toEqual(["school/alex"]);
    expect([await ownership(table), await rows()]).toEqual([owned, before]);

    await batch(destroy("blake"));
    expect(await rows()).toEqual(["school/alex 24"]);
    await turnOf(OTHER, destroy("alex"));
    expect(await rows()).toEqual([]);
    expect(await stacks()).toEqual([]);
  });

  it("takes the stack along when nothing else is in it; a row that was not taken over keeps its record", async () => {
    await batch(up("alex"));
    const later = await database.createStudents();
    await turnOf(OTHER, up("alex", { table: later }, false, "uid-again"));
    const owned = await ownership(table, later);
    expect(owned).toMatchObject([{ owner: "uid-alex" }, { owner: "uid-again" }]);
    present.set("school/alex", again);
    await stale.lookInUnused(new Set([other]), () => true, SIGNAL);
    expect(enqueued).toEqual([SHARED]);
    await stale.remove(SHARED, SIGNAL);
    expect(await engine.recorded(STACK)).toBeUndefined();
    expect(await membersOfStack(other)).toEqual(["school/alex"]);
    expect([await ownership(table, later), await rows()]).toEqual([owned, ["school/alex 23"]]);
  });
});

describe("a SIGKILL of the CLI in the middle of a batch", () => {
  it("loses nothing and doubles nothing", async () => {
    const names = Array.from({ length: 150 }, (_, index) => `writer-${index}`);
    await batch(up("kept"));
    const cut = batch(...names.map((name) => up(name)), destroy("kept"));
    await expect.poll(async () => (await rows()).length, { timeout: 30_000, interval: 5 }).toBeGreaterThan(10);
    killPulumi();
    const [first, ...others] = await cut;
    expect(first).toMatchObject({ outcome: "failed", failures: [{ reason: "Killed", errorClass: "retryable" }] });
    expect(others.at(-1)?.outcome).toBe("succeeded"); // the deletion is an update of its own

    expect(new Set(outcomes(await batch(...names.map((name) => up(name)))))).toEqual(new Set(["succeeded"]));
    expect(await rows()).toHaveLength(names.length);
    expect(await records()).toBe(names.length);
    const checkpoint = join(directory, "state/.pulumi/stacks/kindstack", `${STACK}.json`);
    const { resources } = JSON.parse(await readFile(checkpoint, "utf8")).checkpoint.latest;
    expect(new Set(resources.map(({ urn }: { urn: string }) => urn)).size).toBe(resources.length);

    const destroying = batch(...names.map((name) => destroy(name)));
    await expect.poll(async () => (await rows()).length, { timeout: 30_000, interval: 5 }).toBeLessThan(names.length);
    killPulumi();
    await destroying;
    expect(new Set(outcomes(await batch(...names.map((name) => destroy(name)))))).toEqual(new Set(["succeeded"]));
    expect(await rows()).toEqual([]);
    expect(await records()).toBe(0);
    expect(await stacks()).toEqual([]);
  });
});
