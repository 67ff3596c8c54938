import { beforeEach, describe, expect, it } from "vitest";
import { findDriftedRows } from "../../../providers/postgres/drift";
import { closePool } from "../../../providers/postgres/pool";
import { provider } from "../../../providers/postgres/row";
import type { RowInputs, RowOutputs } from "../../../providers/postgres/row-inputs";
import { inspectRow } from "../../../providers/postgres/row-inspection";
import { errorOf, retryable } from "../failures";
import { rowIn, type TestDatabase, useDatabase } from "./database";
import { createdRow, read, release, remove, update } from "./rows";

/* The providers were pointed at another database than the one that a row was written to, which has no records. */

const [right, wrong] = [useDatabase(), useDatabase()];
const ALEX = { id: "default/sample-student", name: "alex", age: 23, country: "canada" };
const COLUMNS = "id text PRIMARY KEY, name text, age integer, country text";

let table: string;
let outs: RowOutputs;

beforeEach(async () => {
  await wrong.query(
    "DROP SCHEMA IF EXISTS kindstack_ownership CASCADE; DROP SCHEMA public CASCADE; CREATE SCHEMA public",
  );
  await point(right);
  ({ table, outs } = await createdRow(right));
  await point(wrong);
});

async function point(database: TestDatabase): Promise<void> {
  await closePool();
  database.use();
}

/** The error of a row that the database without records may have lost. */
const unknown = () =>
  retryable(
    "OwnershipTableMissing",
    `^row "${ALEX.id}" of table public\\.${table} .* database "${wrong.name}" .* PSQL_HOST and PSQL_DBNAME`,
  );
const hasRecords = async () =>
  (await wrong.query("SELECT FROM pg_namespace WHERE nspname = 'kindstack_ownership'")).length > 0;
const rowsOf = (database: TestDatabase) => database.query(`SELECT * FROM ${table}`);
const drift = (inputs: RowInputs) => findDriftedRows([{ ...inputs, uid: inputs.owner.uid }]);

describe("a database without records", () => {
  it.each<[string, string]>([
    ["is empty", ""],
    ["has the table, without the row", `CREATE TABLE % (${COLUMNS})`],
    ["has a table whose key is of another type", `CREATE TABLE % (${COLUMNS.replace("text", "integer")})`],
    ["has the schema of the records alone", "CREATE SCHEMA kindstack_ownership"],
  ])("that %s does not show that a row is gone", async (_, statement) => {
    await wrong.query(statement.replace("%", table));
    const before = await hasRecords();
    const change = rowIn(table, { values: { ...outs.values, age: 24 } });
    const made = { incarnation: outs.incarnation, location: outs.location };
    const attempts = {
      read: () => read(outs),
      update: () => update(outs, change),
      delete: () => remove(outs),
      "see an update": () => provider.observe?.(change, outs) ?? Promise.resolve(),
      "see a deletion": () => provider.observe?.(undefined, outs) ?? Promise.resolve(),
      preview: () => inspectRow(change, { owners: [outs.owner.uid], made }),
      "compare tables": () => provider.diff("id", outs, rowIn("elsewhere")),
    };
    for (const [what, attempt] of Object.entries(attempts)) expect(await errorOf(attempt()), what).toEqual(unknown());
    expect(await drift(rowIn(table))).toEqual({
      drifted: new Map(),
      unknown: new Map([[outs.owner.uid, retryable("OwnershipTableMissing")]]),
    });
    expect(await hasRecords()).toBe(before);

    await point(right);
    await remove(outs);
    expect(await rowsOf(right)).toEqual([]);
  });

  it("is given no records for a new row that has no table there", async () => {
    const creation = provider.create(rowIn("elsewhere", { key: { id: "new" } }));
    await expect(creation).rejects.toEqual(retryable("TableMissing"));
    expect(await hasRecords()).toBe(false);
    await expect(remove(outs)).rejects.toEqual(unknown());
  });

  it("has the row with other values: an update records it again, and no deletion deletes it before", async () => {
    const values = `('${ALEX.id}', 'bob', 1, 'peru')`;
    await wrong.query(`CREATE TABLE ${table} (${COLUMNS}); INSERT INTO ${table} VALUES ${values}`);
    await expect(remove(outs)).rejects.toEqual(unknown());
    expect((await drift(rowIn(table))).drifted.get(outs.owner.uid)).toBe("the database had no records of owners");
    const present = await update((await read(outs)) as RowOutputs, rowIn(table));
    expect(await rowsOf(wrong)).toEqual([ALEX]);
    await remove(present);
    await remove(present); // after a crash
    expect(await rowsOf(wrong)).toEqual([]);
  });

  it("has lost what it had, as an administrator says with the SQL of the message", async () => {
    const { message } = await errorOf(remove(outs));
    await wrong.query(message.slice(message.indexOf("CREATE SCHEMA")));
    expect(await read(outs)).toBeUndefined();
    await remove(outs);
    await wrong.query(`CREATE TABLE ${table} (${COLUMNS})`);
    await update(outs, rowIn(table));
    expect(await rowsOf(wrong)).toEqual([ALEX]);
  });

  it("lets a row be released, and is given no records for that", async () => {
    await release(outs);
    expect(await hasRecords()).toBe(false);
  });

  it("does not hold up the rows that are there", async () => {
    await wrong.query(`CREATE TABLE ${table} (${COLUMNS}); INSERT INTO ${table} VALUES ('2', 'alex', 23, 'canada')`);
    const there = { ...outs, key: { id: "2" }, incarnation: "of-another" };
    const [missing, deleted] = await Promise.allSettled([outs, there].map(remove));
    expect(missing).toMatchObject({ status: "rejected", reason: { reason: "OwnershipTableMissing" } });
    expect(deleted).toMatchObject({ status: "fulfilled" });
    expect(await rowsOf(wrong)).toEqual([]);
  });
});

it("records that may not be seen do not show that a row is gone", async () => {
  await right.query(`DELETE FROM ${table}`);
  await right.useAs(await right.createRole("stranger", `GRANT ALL ON ${table} TO %`));
  const denied = retryable("PermissionDenied");
  for (const attempt of [() => read(outs), () => update(outs, rowIn(table)), () => remove(outs)]) {
    await expect(attempt()).rejects.toEqual(denied);
  }
  expect((await drift(rowIn(table))).unknown.get(outs.owner.uid)).toEqual(denied);
});
