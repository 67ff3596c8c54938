import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { findDriftedRows, type WantedRow } from "../../../providers/postgres/drift";
import { closePool } from "../../../providers/postgres/pool";
import { provider } from "../../../providers/postgres/row";
import type { RowInputs } from "../../../providers/postgres/row-inputs";
import { retryable } from "../failures";
import { RECORDS_RIGHTS, rowIn, useDatabase } from "./database";
import { createdRow } from "./rows";

const database = useDatabase();
/** Who may do with a table only what a test grants. */
let reader: string;

beforeAll(async () => {
  await createdRow(database); // makes the records
  reader = await database.createRole("reader", RECORDS_RIGHTS);
});
afterEach(async () => {
  await closePool();
  database.use();
});
function owned(inputs: RowInputs, uid: string): RowInputs & WantedRow {
  return { ...inputs, owner: { uid, description: uid }, uid };
}

/** Rows that are in the table as they should be. */
async function writtenRows(table: string, count: number): Promise<WantedRow[]> {
  const rows = Array.from({ length: count }, (_, index) =>
    owned(rowIn(table, { key: { id: `default/${index}` } }), `${table}-${index}`),
  );
  await Promise.all(rows.map((row) => provider.create(row)));
  return rows;
}

const driftedAmong = async (rows: readonly WantedRow[]) => {
  const { drifted, unknown } = await findDriftedRows(rows);
  expect([...unknown]).toEqual([]);
  return [...drifted.keys()];
};

describe("findDriftedRows", () => {
  it("finds rows that are missing or changed, in any of the tables", async () => {
    const [table, other] = [await database.createStudents(), await database.createStudents()];
    const rows = [...(await writtenRows(table, 5)), ...(await writtenRows(other, 3))];
    await database.query(`DELETE FROM ${table} WHERE id = 'default/1'`);
    await database.query(`UPDATE ${table} SET age = 99 WHERE id = 'default/3'`);
    await database.query(`UPDATE ${other} SET country = NULL WHERE id = 'default/0'`);
    expect(await findDriftedRows(rows)).toEqual({
      drifted: new Map([
        [`${table}-1`, 'row "default/1" was missing'],
        [`${table}-3`, 'column "age" was "99" in place of "23"'],
        [`${other}-0`, 'column "country" was NULL in place of "canada"'],
      ]),
      unknown: new Map(),
    });
  });

  it("does not take other columns of the table for drift", async () => {
    const columns = "id text PRIMARY KEY, name text, position integer DEFAULT 7, fields text";
    const table = await database.createStudents(columns);
    const row = owned(rowIn(table, { values: { name: "alex" } }), "1");
    await provider.create(row);
    expect(await driftedAmong([row])).toEqual([]);
  });

  it.each([
    ["a new, empty table", "CREATE TABLE % (LIKE %_ INCLUDING ALL)"],
    ["a copy with all rows", "CREATE TABLE % (LIKE %_ INCLUDING ALL); INSERT INTO % SELECT * FROM %_"],
    ["a table without the columns", "CREATE TABLE % (id text PRIMARY KEY)"],
  ])("tells that the table was replaced by %s, and takes no row for drifted", async (_, statements) => {
    const table = await database.createStudents();
    const rows = await writtenRows(table, 2);
    await database.query(`ALTER TABLE % RENAME TO %_; ${statements}`.replaceAll("%", table));
    const { drifted, unknown } = await findDriftedRows(rows);
    expect([...drifted]).toEqual([]);
    const replaced = retryable("TableReplaced", `now called public.${table}_; public.${table} is another table`);
    expect([...unknown]).toEqual(rows.map(({ uid }) => [uid, replaced]));
  });

  it("tells of tables whose names were swapped, and of the rows that are in place by now", async () => {
    const [one, two] = [await database.createStudents(), await database.createStudents()];
    const [first, second] = [await writtenRows(one, 2), await writtenRows(two, 1)];
    await database.query(
      `ALTER TABLE ${one} RENAME TO swap; ALTER TABLE ${two} RENAME TO ${one}; ALTER TABLE swap RENAME TO ${two}`,
    );
    const { drifted, unknown } = await findDriftedRows([...first, ...second]);
    expect([...drifted]).toEqual([]);
    expect([...unknown.keys()].sort()).toEqual([...first, ...second].map(({ uid }) => uid).sort());
    const later = owned(rowIn(one, { key: { id: "default/later" } }), "later");
    await provider.create(later);
    await database.query(`UPDATE ${one} SET age = 24 WHERE id = 'default/later'`);
    const afterwards = await findDriftedRows([...first, later]);
    expect([...afterwards.drifted]).toEqual([["later", 'column "age" was "24" in place of "23"']]);
    expect([...afterwards.unknown.keys()]).toEqual(first.map(({ uid }) => uid));
  });

  it("takes a row that lost its record for drifted where its owner has another one of that key elsewhere", async () => {
    const [one, two] = [await database.createStudents(), await database.createStudents()];
    const rows = [one, two].map((table) => owned(rowIn(table), "both"));
    for (const row of rows) await provider.create(row);
    await database.forgetRecords(one);
    const { drifted, unknown } = await findDriftedRows(rows);
    expect([[...drifted.values()], [...unknown]]).toEqual([["the row's owner was not recorded"], []]);
  });

  it.each([
    "DROP TABLE %",
    "ALTER TABLE % DROP age",
    "ALTER TABLE % ALTER name TYPE integer USING 7", // of which the wanted value is none
    "ALTER TABLE % RENAME TO %_; CREATE VIEW % AS SELECT id, name, 1 / (age - age) AS age, country FROM %_",
  ])("takes all rows for drifted after %s, and no other's", async (statement) => {
    const [table, other] = [await database.createStudents(), await database.createStudents()];
    const rows = [...(await writtenRows(table, 2)), ...(await writtenRows(other, 2))];
    await database.query(statement.replaceAll("%", table));
    expect(await driftedAmong(rows)).toEqual([`${table}-0`, `${table}-1`]);
  });

  it.each([
    ["it", "UPDATE"],
    ["a column", "SELECT (id, name)"],
  ])(
    "tells of a table that cannot be compared because %s may not be read, and compares the others",
    async (_, right) => {
      const [before, table, after] = await Promise.all([1, 2, 3].map(() => database.createStudents()));
      const tables = [before, table, after] as string[];
      const rows = (await Promise.all(tables.map((name) => writtenRows(name, 2)))).flat();
      for (const name of [before, after]) await database.query(`UPDATE ${name} SET age = 99 WHERE id = 'default/1'`);
      await database.query(`GRANT ALL ON ${before}, ${after} TO ${reader}; GRANT ${right} ON ${table} TO ${reader}`);
      await database.useAs(reader);

      const { drifted, unknown } = await findDriftedRows(rows);

      expect([...drifted.keys()]).toEqual([`${before}-1`, `${after}-1`]);
      const denied = retryable("PermissionDenied", /./);
      expect([...unknown]).toEqual([0, 1].map((index) => [`${table}-${index}`, denied]));
    },
  );

  it("knows a table from a type of that name", async () => {
    await database.query("CREATE TABLE point (id text PRIMARY KEY, name text, age integer, country text)");
    const [row] = await writtenRows("point", 1);
    expect(await driftedAmong(row ? [row, { ...row, values: { age: 99 }, uid: "changed" }] : [])).toEqual(["changed"]);
  });

  it("asks about thousands at once", async () => {
    const table = await database.createStudents();
    await database.query(
      `INSERT INTO ${table} SELECT 'default/' || n, 'alex', n, 'canada' FROM generate_series(1, 12000) n;
       WITH known AS (INSERT INTO kindstack_ownership.tables (server, oid, table_schema, table_name)
         VALUES ('', 0, 'public', '${table}') RETURNING id)
       INSERT INTO kindstack_ownership.records (table_id, key, owner, description, incarnation)
       SELECT id, 'default/' || n, n, '', n FROM known, generate_series(1, 12000) n`,
    );
    const rows = Array.from({ length: 12_000 }, (_, index) => ({
      table,
      key: { id: `default/${index + 1}` },
      values: { name: "alex", age: index + 1, country: "canada" },
      uid: String(index + 1),
    }));
    await database.query(`UPDATE ${table} SET age = 0 WHERE id IN ('default/1', 'default/5001', 'default/12000')`);
    expect(await driftedAmong(rows)).toEqual(["1", "5001", "12000"]);
  });

  it("says so when the database cannot be asked", async () => {
    await closePool();
    database.use({ PSQL_DBNAME: "nowhere" });
    const finding = findDriftedRows([{ ...rowIn("students"), uid: "1" }]);
    await expect(finding).rejects.toEqual(retryable("DatabaseMissing", 'database "nowhere" does not exist'));
  });
});
