import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { findDriftedRows } from "../../../providers/postgres/drift";
import { closePool } from "../../../providers/postgres/pool";
import { provider } from "../../../providers/postgres/row";
import type { RowInputs, RowOutputs } from "../../../providers/postgres/row-inputs";
import { inspectRow } from "../../../providers/postgres/row-inspection";
import { controlPlane } from "../../control-plane";
import { rowIn, TestDatabase } from "./database";

/* The providers were pointed at another database than the one that a row was written to, which has no records. */

const [right, wrong] = [new TestDatabase(controlPlane().env), new TestDatabase(controlPlane().env)];
const ALEX = { id: "default/sample-student", name: "alex", age: 23, country: "canada" };
const COLUMNS = "id text PRIMARY KEY, name text, age integer, country text";

let table: string;
let outs: RowOutputs;

beforeAll(() => Promise.all([right.open(), wrong.open()]));
afterAll(async () => {
  await wrong.close();
  await right.close();
});
beforeEach(async () => {
  await wrong.query(
    "DROP SCHEMA IF EXISTS kindstack_ownership CASCADE; DROP SCHEMA public CASCADE; CREATE SCHEMA public",
  );
  await point(right);
  table = await right.createStudents();
  outs = (await provider.create(rowIn(table))).outs;
  await point(wrong);
});

async function point(database: TestDatabase): Promise<void> {
  await closePool();
  database.use();
}

const unknown = (database = wrong) =>
  expect.objectContaining({
    reason: "OwnershipTableMissing",
    errorClass: "retryable",
    message: expect.stringMatching(
      new RegExp(
        `^row "${ALEX.id}" of table public\\.${table} .* database "${database.name}" .* PSQL_HOST and PSQL_DBNAME`,
      ),
    ),
  });
const hasRecords = async () =>
  (await wrong.query("SELECT FROM pg_namespace WHERE nspname = 'kindstack_ownership'")).length > 0;
const rowsOf = (database: TestDatabase) => database.query(`SELECT * FROM ${table}`);
const drift = (inputs: RowInputs) => findDriftedRows([{ ...inputs, uid: inputs.owner.uid }]);
const refused = (work: Promise<unknown>) =>
  work.then(
    () => "no error",
    (error: unknown) => error,
  );

describe("a database without records", () => {
  it.each<[string, string]>([
    ["is empty", ""],
    ["has the table, without the row", `CREATE TABLE % (${COLUMNS})`],
    [
      "has a table whose key is of another type",
      "CREATE TABLE % (id integer PRIMARY KEY, name text, age int, country text)",
    ],
    ["has the schema of the records alone", "CREATE SCHEMA kindstack_ownership"],
  ])("that %s does not show that a row is gone", async (_, statement) => {
    await wrong.query(statement.replace("%", table));
    const before = await hasRecords();
    const change = rowIn(table, { values: { ...outs.values, age: 24 } });
    const made = { incarnation: outs.incarnation, location: outs.location };
    const attempts = {
      read: () => provider.read("id", outs),
      update: () => provider.update("id", outs, change),
      delete: () => provider.delete("id", outs),
      "see an update": () => provider.observe?.(change, outs) ?? Promise.resolve(),
      "see a deletion": () => provider.observe?.(undefined, outs) ?? Promise.resolve(),
      preview: () => inspectRow(change, { owners: [outs.owner.uid], made }),
      "compare tables": () => provider.diff("id", outs, rowIn("elsewhere")),
    };
    for (const [what, attempt] of Object.entries(attempts)) expect(await refused(attempt()), what).toEqual(unknown());
    const { drifted, unknown: unchecked } = await drift(rowIn(table));
    expect([...drifted]).toEqual([]);
    expect(unchecked.get(outs.owner.uid)).toMatchObject({ reason: "OwnershipTableMissing", errorClass: "retryable" });
    expect(await hasRecords()).toBe(before);

    await point(right);
    await provider.delete("id", outs);
    expect(await rowsOf(right)).toEqual([]);
  });

  it("is given no records for a new row that has no table there", async () => {
    const creation = provider.create(rowIn("elsewhere", { key: { id: "new" } }));
    expect(await refused(creation)).toMatchObject({ reason: "TableMissing", errorClass: "retryable" });
    expect(await hasRecords()).toBe(false);
    expect(await refused(provider.delete("id", outs))).toEqual(unknown());
  });

  it("has the row with other values: an update records it again, and no deletion deletes it before", async () => {
    await wrong.query(
      `CREATE TABLE ${table} (${COLUMNS}); INSERT INTO ${table} VALUES ('${ALEX.id}', 'bob', 1, 'peru')`,
    );
    expect(await refused(provider.delete("id", outs))).toEqual(unknown());
    expect((await drift(rowIn(table))).drifted.get(outs.owner.uid)).toBe("the database had no records of owners");
    const { props } = await provider.read("id", outs);
    const { outs: present } = await provider.update("id", props as RowOutputs, rowIn(table));
    expect(await rowsOf(wrong)).toEqual([ALEX]);
    await provider.delete("id", present);
    await provider.delete("id", present); // after a crash
    expect(await rowsOf(wrong)).toEqual([]);
  });

  it("has lost what it had, as an administrator says with the SQL of the message", async () => {
    const { message } = (await refused(provider.delete("id", outs))) as Error;
    await wrong.query(message.slice(message.indexOf("CREATE SCHEMA")));
    expect(await provider.read("id", outs)).toEqual({});
    await provider.delete("id", outs);
    await wrong.query(`CREATE TABLE ${table} (${COLUMNS})`);
    await provider.update("id", outs, rowIn(table));
    expect(await rowsOf(wrong)).toEqual([ALEX]);
  });

  it("lets a row be released, and is given no records for that", async () => {
    await provider.release("id", outs);
    expect(await hasRecords()).toBe(false);
  });

  it("does not hold up the rows that are there", async () => {
    await wrong.query(`CREATE TABLE ${table} (${COLUMNS}); INSERT INTO ${table} VALUES ('2', 'alex', 23, 'canada')`);
    const there = { ...outs, key: { id: "2" }, incarnation: "of-another" };
    const [missing, deleted] = await Promise.allSettled([outs, there].map((row) => provider.delete("id", row)));
    expect(missing).toMatchObject({ status: "rejected", reason: { reason: "OwnershipTableMissing" } });
    expect(deleted).toMatchObject({ status: "fulfilled" });
    expect(await rowsOf(wrong)).toEqual([]);
  });
});

it("records that may not be seen do not show that a row is gone", async () => {
  const role = `${right.name}_stranger`;
  await right.query(
    `CREATE ROLE ${role} LOGIN PASSWORD 'stranger'; DELETE FROM ${table}; GRANT ALL ON ${table} TO ${role}`,
  );
  await closePool();
  right.use({ PSQL_USER: role, PSQL_PASSWORD: "stranger" });
  try {
    const attempts = [
      () => provider.read("id", outs),
      () => provider.update("id", outs, rowIn(table)),
      () => provider.delete("id", outs),
    ];
    for (const attempt of attempts) {
      expect(await refused(attempt())).toMatchObject({ reason: "PermissionDenied", errorClass: "retryable" });
    }
    expect((await drift(rowIn(table))).unknown.get(outs.owner.uid)).toMatchObject({ reason: "PermissionDenied" });
  } finally {
    await closePool();
    await right.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
  }
});
