import fs from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { freePort } from "../../src/dev/ports";
import { eventually } from "../../src/testing/eventually";
import { FINALIZER } from "../../stacks/contract/object";
import type { PostgresWriterSpec } from "../../stacks/kinds/postgres-writer/schema";
import { controlPlane } from "../control-plane";
import { filesUnder } from "../files";
import { TestDatabase } from "../providers/postgres/database";
import {
  apply,
  conditionOf,
  conditionTypes,
  create,
  edit,
  eventsAbout,
  find,
  get,
  postgresWriter,
  remove,
  uniqueName,
  untilCondition,
  untilGone,
  untilReady,
} from "./objects";
import { useOperator } from "./operator";

const database = new TestDatabase(controlPlane().env);
beforeAll(() => database.open());
afterAll(() => database.close());
const operator = useOperator({
  args: ["--concurrency", "8", "--drift-interval", "1"],
  env: { PSQL_DBNAME: database.name },
});

const rowsOf = (table: string) => database.query(`SELECT * FROM ${table} ORDER BY id`);

describe("a PostgresWriter that makes no sense is refused by the API server", () => {
  it.each<[string, Partial<PostgresWriterSpec>, RegExp]>([
    ["a negative age", { age: -1 }, /spec\.age: Invalid value: -1: .*greater than or equal to 0/],
    ["an age that no integer column holds", { age: 2 ** 31 }, /spec\.age: Invalid value: 2147483648/],
    ["an age with a fraction", { age: 1.5 }, /spec\.age/],
    ["an age in words", { age: "old" as unknown as number }, /spec\.age: Invalid value: "string"/],
    ["an empty table", { table: "" }, /spec\.table: Invalid value: ""/],
    ["a table in a database in a server", { table: "a.b.c" }, /spec\.table: Invalid value: "a\.b\.c"/],
  ])("because of %s", async (_, spec, message) => {
    const writer = postgresWriter(uniqueName("invalid"), spec);
    await expect(create(writer)).rejects.toMatchObject({ status: 422, message: expect.stringMatching(message) });
    expect(await find(writer)).toBeUndefined();
  });

  it.each(["table", "name", "age", "country"])("because of a missing %s", async (field) => {
    const { spec, ...manifest } = postgresWriter(uniqueName("invalid"), {});
    const incomplete = Object.fromEntries(Object.entries(spec as object).filter(([name]) => name !== field));
    await expect(create({ ...manifest, spec: incomplete })).rejects.toMatchObject({
      status: 422,
      message: expect.stringContaining(`spec.${field}: Required value`),
    });
  });
});

describe("60 objects whose table is missing", () => {
  it("are tried by one of them, and are Ready once it is made", async () => {
    const table = uniqueName("late").replace("-", "_");
    const names = Array.from({ length: 60 }, (_, index) => `${table.replace("_", "-")}-${index}`);
    const controller = "postgreswriters.demo.yash.com";
    const updates = () => operator.metric("kindstack_updates_total", { kind: controller });
    const reconciles = () => operator.metric("controller_runtime_reconcile_total", { controller });
    const [before, reconcilesBefore] = [await updates(), await reconciles()];
    await Promise.all(names.map((name) => create(postgresWriter(name, { table }))));
    const last = postgresWriter(names.at(-1) ?? "", { table });
    for (const name of names) await untilCondition(postgresWriter(name, { table }), "Ready", "False", "TableMissing");
    expect((await reconciles()) - reconcilesBefore).toBeLessThan(1.5 * names.length);
    const told = await updates();
    expect(told - before).toBeLessThanOrEqual(names.length + 12);
    await eventually(async () => expect(await updates()).toBeGreaterThanOrEqual(told + 2));
    const tried = await updates();
    expect(tried - told).toBeLessThanOrEqual(3);

    await database.query(`CREATE TABLE ${table} (id text PRIMARY KEY, name text, age integer, country text)`);
    await eventually(async () => {
      expect(await database.query(`SELECT count(*)::int AS rows FROM ${table}`)).toEqual([{ rows: names.length }]);
    });
    await untilReady(last);
    expect((await updates()) - tried).toBeLessThanOrEqual(names.length + 3);
    await Promise.all(names.map((name) => remove(postgresWriter(name, { table }))));
    for (const name of names) await untilGone(postgresWriter(name, { table }));
  });
});

describe.concurrent("what time can heal is tried again", () => {
  it("when the table does not exist yet", async () => {
    const table = uniqueName("late").replace("-", "_");
    const writer = postgresWriter(uniqueName("writer"), { table });
    await apply(writer);
    const waiting = await untilCondition(writer, "Ready", "False", "TableMissing");
    expect(conditionOf(waiting, "Ready").message).toContain(`relation "${table}" does not exist`);
    expect(conditionOf(waiting, "Reconciling").status).toBe("True");
    expect(conditionTypes(waiting)).not.toContain("Stalled");
    await eventually(async () => {
      expect(await eventsAbout(waiting)).toMatchObject([{ type: "Warning", reason: "TableMissing" }]);
    });

    await database.query(`CREATE TABLE ${table} (id text PRIMARY KEY, name text, age integer, country text)`);
    await untilReady(writer);
    expect(await rowsOf(table)).toMatchObject([{ id: `default/${writer.metadata.name}`, age: 23 }]);
  });

  it("when the table goes away and comes back", async () => {
    const table = await database.createStudents();
    const writer = postgresWriter(uniqueName("writer"), { table });
    await apply(writer);
    await untilReady(writer);

    await database.query(`CREATE TABLE ${table}_aside (LIKE ${table} INCLUDING ALL); DROP TABLE ${table}`);
    await untilCondition(writer, "Ready", "False", "TableMissing");
    await database.query(`ALTER TABLE ${table}_aside RENAME TO ${table}`);
    await untilReady(writer);
    expect(await rowsOf(table)).toHaveLength(1);
  });

  it("when another owner's row has the key; that row is left alone", async () => {
    const table = await database.createStudents();
    const writer = postgresWriter(uniqueName("writer"), { table });
    const id = `default/${writer.metadata.name}`;
    const foreign = { id, name: "foreign", age: 1, country: "nowhere" };
    await database.query(`INSERT INTO ${table} VALUES ($1, $2, $3, $4)`, Object.values(foreign));
    await apply(writer);
    const waiting = await untilCondition(writer, "Ready", "False", "RowConflict");
    expect(conditionOf(waiting, "Ready").message).toContain(`row "${id}" of table public.${table}`);
    expect(await rowsOf(table)).toEqual([foreign]);

    await database.query(`DELETE FROM ${table}`);
    await untilReady(writer);
    expect(await rowsOf(table)).toMatchObject([{ id, name: "alex" }]);
  });

  it("and does not outlive the object: what was never ours is not deleted with it", async () => {
    const table = await database.createStudents();
    const writer = postgresWriter(uniqueName("writer"), { table });
    await database.query(`INSERT INTO ${table} (id) VALUES ($1)`, [`default/${writer.metadata.name}`]);
    await apply(writer);
    await untilCondition(writer, "Ready", "False", "RowConflict");

    await remove(writer);
    await untilGone(writer);
    expect(await rowsOf(table)).toHaveLength(1);
  });
});

describe("what only its author can correct", () => {
  it("waits for the author: a column of another type", async () => {
    const table = await database.createStudents("id text PRIMARY KEY, name text, age date, country text");
    const fitting = await database.createStudents();
    const writer = postgresWriter(uniqueName("writer"), { table });
    await apply(writer);
    const stalled = await untilCondition(writer, "Stalled", "True", "WrongType");
    expect(conditionOf(stalled, "Stalled").message).toMatch(/date/);
    expect(conditionOf(stalled, "Ready").status).toBe("False");
    expect(conditionTypes(stalled)).not.toContain("Reconciling");

    await edit(writer, { spec: { table: fitting } });
    await untilReady(writer);
    expect(await rowsOf(fitting)).toHaveLength(1);
    expect(await rowsOf(table)).toEqual([]);
  });

  it("waits for the author: a table that is not on the list", async () => {
    const [allowed, closed] = [await database.createStudents(), await database.createStudents()];
    await operator.restart({ env: { KINDSTACK_POSTGRES_TABLES: allowed } });
    const writer = postgresWriter(uniqueName("writer"), { table: closed });
    await apply(writer);
    const stalled = await untilCondition(writer, "Stalled", "True", "TableNotAllowed");
    expect(conditionOf(stalled, "Stalled").message).toContain(closed);
    expect(await rowsOf(closed)).toEqual([]);

    await edit(writer, { spec: { table: allowed } });
    await untilReady(writer);
    expect(await rowsOf(allowed)).toHaveLength(1);
  });
});

/* Each test finds what the one before has left: a start of the operator takes seconds. */
describe("a database that is away", () => {
  const table = uniqueName("away").replace("-", "_");
  const writer = (name: string) => postgresWriter(uniqueName(name), { table });
  const [leaving, waiting, refused, resting] = [
    writer("leaving"),
    writer("waiting"),
    writer("refused"),
    writer("resting"),
  ];
  const wrongPassword = "a-wrong-password-that-must-not-show";

  it("is said to be so", async () => {
    await database.query(`CREATE TABLE ${table} (id text PRIMARY KEY, name text, age integer, country text)`);
    await operator.restart();
    await Promise.all([apply(leaving), apply(resting)]);
    await Promise.all([untilReady(leaving), untilReady(resting)]);

    await operator.restart({ env: { PSQL_PORT: String(await freePort()) } });
    await Promise.all([apply(waiting), remove(leaving)]);
    const unreachable = await untilCondition(waiting, "Ready", "False", "ConnectionRefused");
    expect(conditionOf(unreachable, "Ready").message).toContain("ECONNREFUSED");
    const staying = await untilCondition(leaving, "Ready", "False", "DeletionFailed");
    expect(conditionOf(staying, "Ready").message).toContain("ECONNREFUSED");
    expect(staying.metadata.finalizers).toEqual([FINALIZER]);
    await untilCondition(resting, "DriftUnknown", "True", "ConnectionRefused");
  });

  it("is told from one that refuses the password", async () => {
    await operator.restart({ env: { PSQL_PASSWORD: wrongPassword } });
    await apply(refused);
    const unauthorised = await untilCondition(refused, "Ready", "False", "AuthenticationFailed");
    expect(conditionOf(unauthorised, "Ready").message).toContain("password authentication failed");
    await untilCondition(resting, "DriftUnknown", "True", "AuthenticationFailed");
  });

  it("holds objects up only until it is back, and no password is told to anyone", async () => {
    await operator.restart({ env: { KINDSTACK_LOG_LEVEL: "trace" } });
    await Promise.all([untilReady(waiting), untilReady(refused), untilGone(leaving)]);
    await eventually(async () => expect(conditionTypes(await get(resting))).not.toContain("DriftUnknown"));
    expect(await rowsOf(table)).toEqual([
      expect.objectContaining({ id: `default/${refused.metadata.name}` }),
      expect.objectContaining({ id: `default/${resting.metadata.name}` }),
      expect.objectContaining({ id: `default/${waiting.metadata.name}` }),
    ]);

    const files = filesUnder(operator.directory);
    expect(files.filter((file) => file.includes("/state/.pulumi/stacks/"))).not.toEqual([]);
    const objects = await Promise.all([waiting, refused].map(get));
    const told = JSON.stringify([objects, await Promise.all(objects.map(eventsAbout))]) + operator.log;
    for (const password of [wrongPassword, controlPlane().env.PSQL_PASSWORD ?? ""]) {
      expect(password).not.toBe("");
      expect(told).not.toContain(password);
      // History is pruned meanwhile.
      const present = files.filter((file) => fs.existsSync(file));
      expect(present.filter((file) => fs.readFileSync(file, "utf8").includes(password))).toEqual([]);
    }
  });
});
