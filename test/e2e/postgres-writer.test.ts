import { beforeAll, describe, expect, it } from "vitest";
import type { Manifest } from "../../providers/kubernetes/client";
import { eventually } from "../../src/testing/eventually";
import { PAUSED_ANNOTATION } from "../../stacks/contract/annotations";
import { useDatabase } from "../providers/postgres/database";
import {
  applyUntilReady,
  conditionOf,
  conditionTypes,
  removeUntilGone,
  untilCondition,
  untilGone,
  untilReady,
} from "./conditions";
import { kubectl, noKubectl } from "./kubectl";
import { postgresWriter, sampleFile, uniqueName } from "./manifests";
import { apply, edit, eventsAbout, get, remove } from "./objects";
import { kindstack, useOperator } from "./operator";

const database = useDatabase();
beforeAll(() => database.query("CREATE TABLE students (id text PRIMARY KEY, name text, age integer, country text)"));
const operator = useOperator({
  args: ["--concurrency", "8", "--drift-interval", "1"],
  env: { PSQL_DBNAME: database.name },
});

const rowsOf = (table: string) => database.query(`SELECT * FROM ${table} ORDER BY id`);

describe("the sample PostgresWriter", () => {
  const { file, manifest } = sampleFile("postgres-writer");
  const alex = { id: "default/sample-student", name: "alex", age: 23, country: "canada" };

  it("makes exactly one row and reports it", async () => {
    const ready = await applyUntilReady(manifest);
    expect(await rowsOf("students")).toEqual([alex]);
    expect(ready.status).toMatchObject({ id: "default/sample-student", observedGeneration: 1 });
    expect(conditionTypes(ready)).toEqual(["Ready", "Synced"]);
  });

  it("is what kubectl shows, waits for and deletes", async ({ skip }) => {
    skip(noKubectl !== undefined, noKubectl);
    await kubectl(["apply", "-f", file]);
    await kubectl(["wait", "--for=condition=Ready", "postgreswriter/sample-student", "--timeout=20s"]);
    const { stdout } = await kubectl(["get", "postgreswriters"]);
    const [, row = ""] = stdout.split("\n");
    expect(row.split(/\s+/).slice(0, 4)).toEqual(["sample-student", "students", "default/sample-student", "True"]);

    const deleted = await kubectl(["delete", "-f", file, "--timeout=30s"]);
    expect(deleted).toMatchObject({ exitCode: 0, stdout: expect.stringContaining("deleted") });
    expect(await rowsOf("students")).toEqual([]);
    await eventually(() => expect(operator.stateFiles("sample-student")).toEqual([]));
  });
});

describe.concurrent("a PostgresWriter", () => {
  it("updates its row when its spec changes, and deletes it when it is deleted", async () => {
    const table = await database.createStudents();
    const writer = postgresWriter(uniqueName("writer"), { table });
    const id = `default/${writer.metadata.name}`;
    await applyUntilReady(writer);

    await edit(writer, { spec: { name: "o'brien; --", age: 0, country: "日本" } });
    await untilReady(writer);
    expect(await rowsOf(table)).toEqual([{ id, name: "o'brien; --", age: 0, country: "日本" }]);

    await removeUntilGone(writer);
    expect(await rowsOf(table)).toEqual([]);
  });
});

it("a PostgresWriter that lost its finalizer by force and was made again takes its row over", async () => {
  const table = await database.createStudents();
  const writer = postgresWriter(uniqueName("again"), { table });
  await applyUntilReady(writer);
  await edit(writer, { metadata: { annotations: { [PAUSED_ANNOTATION]: "true" } } });
  await untilCondition(writer, "Paused", "True", "Paused");
  await remove(writer);
  await edit(writer, { metadata: { finalizers: null } });
  await untilGone(writer);
  expect(await rowsOf(table)).toHaveLength(1);

  await apply(postgresWriter(writer.metadata.name ?? "", { table, age: 1 }));
  await untilReady(writer);
  expect(await rowsOf(table)).toMatchObject([{ age: 1 }]);
  await removeUntilGone(writer);
  expect(await rowsOf(table)).toEqual([]);
});

it("a table that another session has locked holds up its own objects, which say by whom, and no others, and is written when it is released", async () => {
  const [locked, free] = [await database.createStudents(), await database.createStudents()];
  const holder = await database.connect();
  await holder.query(`SET application_name = 'migration'; BEGIN; LOCK TABLE ${locked} IN ACCESS EXCLUSIVE MODE`);
  const waiting = Array.from({ length: 6 }, () => postgresWriter(uniqueName("waiting"), { table: locked }));
  try {
    await Promise.all(waiting.map(apply));
    const [first] = waiting as [Manifest];
    const told = await untilCondition(first, "Ready", "False", "LockTimeout");
    const message = new RegExp(`table ${locked} is locked by process \\d+ \\(application "migration"`);
    expect(conditionOf(told, "Ready").message).toMatch(message);

    const started = performance.now();
    const writer = postgresWriter(uniqueName("free"), { table: free });
    await applyUntilReady(writer);
    console.log(`Ready beside a locked table after ${Math.round(performance.now() - started)} ms`);
  } finally {
    await holder.end();
  }
  await Promise.all(waiting.map(untilReady));
  expect(await rowsOf(locked)).toHaveLength(6);
});

describe.concurrent("a row that a user changed by hand", () => {
  const untilTold = (writer: Manifest, reason: string, note: RegExp) =>
    eventually(async () => {
      const told = (await eventsAbout(await get(writer))).filter((event) => event.reason === reason);
      expect(told.map((event) => event.note)).toContainEqual(expect.stringMatching(note));
    });

  it("is repaired, and Events say what was not as it should be", async () => {
    const table = await database.createStudents();
    const writer = postgresWriter(uniqueName("writer"), { table });
    const row = { id: `default/${writer.metadata.name}`, name: "alex", age: 23, country: "canada" };
    await applyUntilReady(writer);

    await database.query(`UPDATE ${table} SET age = 99, name = NULL`);
    await eventually(async () => expect(await rowsOf(table)).toEqual([row]));
    await untilReady(writer);

    await untilTold(
      writer,
      "Repaired",
      /^1 updated: column "name" was NULL in place of "alex", column "age" was "99" in/,
    );

    const words = ["history", "postgreswriter", writer.metadata.name ?? "", "-n", "default"];
    const history = kindstack(words, { PULUMI_BACKEND_URL: `file://${operator.stateDirectory}` });
    expect(history).toMatch(/update Row \S+: age "99" → 23; name nothing → "alex"/);

    await database.query(`DELETE FROM ${table}`);
    await eventually(async () => expect(await rowsOf(table)).toEqual([row]));
    await untilReady(writer);
    await untilTold(writer, "Repaired", new RegExp(`^1 created: row "${row.id}" was missing$`));

    await database.query(`CREATE TABLE new_${table} (LIKE ${table} INCLUDING ALL);
      BEGIN; DROP TABLE ${table}; ALTER TABLE new_${table} RENAME TO ${table}; COMMIT`);
    await eventually(async () => expect(await rowsOf(table)).toEqual([row]));
    await untilTold(
      writer,
      "Repaired",
      new RegExp(`table public.${table} was dropped and made again, row .* was missing`),
    );

    await database.query(`DROP TABLE ${table}`);
    await untilCondition(writer, "Ready", "False", "TableMissing");
    await database.query(`CREATE TABLE ${table} (id text PRIMARY KEY, name text, age integer, country text)`);
    await untilReady(writer);
    expect(await rowsOf(table)).toEqual([row]);
    await untilTold(writer, "Updated", new RegExp(`table ${table} did not exist`));
  });
});
