import { describe, expect, it } from "vitest";
import { removeUntrackedRows } from "../../../providers/postgres/row";
import type { Properties } from "../../../providers/provider";
import { rowIn, useDatabase } from "./database";
import { create, createdRow, remove } from "./rows";

const database = useDatabase();
const OWNER = rowIn("students").owner;
const OTHER = { uid: "uid-other", description: "PostgresWriter.demo.yash.com/default/other" };

const idsIn = async (table: string) => (await database.rowsOf(table)).map(({ id }) => id);
const recordsOf = async (table: string) => (await database.recordsOf(table)).map(({ key }) => key);
const removeUntracked = (known: Properties[] = [], release = false) =>
  removeUntrackedRows(OWNER, "id", known, { release }, undefined);

describe("rows of an owner that no state knows", () => {
  it("are none before any owner had a row", async () => {
    expect(await removeUntracked()).toEqual([]);
  });

  it("are deleted with their records; what the state knows stays, and so does what is others'", async () => {
    // By an update that was cut off before it was saved; then the object named another table.
    const { table: before } = await createdRow(database);
    const { table: now, outs: kept } = await createdRow(database);
    await create(rowIn(before, { key: { id: "default/other" }, owner: OTHER }));
    await database.query(`INSERT INTO ${before} VALUES ('default/foreign', 'anna', 30, 'france')`);

    const removed = await removeUntracked([{ manifest: {} }, { ...kept }]);
    expect(removed).toEqual([`row default/sample-student of table public.${before}`]);

    expect(await idsIn(before)).toEqual(["default/foreign", "default/other"]);
    expect(await idsIn(now)).toEqual(["default/sample-student"]);
    expect(await recordsOf(before)).toEqual(["default/other"]);
    expect(await recordsOf(now)).toEqual(["default/sample-student"]);
    await remove(kept);
  });

  it("are deleted in their own schema, whatever another one has under the same names", async () => {
    const table = await database.createStudents();
    await database.query(`CREATE SCHEMA app; CREATE TABLE app.${table} (LIKE ${table} INCLUDING ALL)`);
    await create(rowIn(`app.${table}`));
    await database.query(`INSERT INTO ${table} SELECT * FROM app.${table}`);
    await removeUntracked();
    expect(await idsIn(`app.${table}`)).toEqual([]);
    expect(await idsIn(table)).toEqual(["default/sample-student"]);
  });

  it("are forgotten where their table is gone", async () => {
    const { table } = await createdRow(database);
    await database.query(`DROP TABLE ${table}`);
    await removeUntracked();
    expect(await recordsOf(table)).toEqual([]);
  });

  it("are named, where one of them cannot be deleted: no later try would name those before it", async () => {
    const table = await database.createStudents();
    for (const id of ["a", "b"]) await create(rowIn(table, { key: { id } }));
    const keepB = "IF OLD.id = 'b' THEN RAISE EXCEPTION 'b stays'; END IF; RETURN OLD;";
    await database.createTrigger(`CREATE TRIGGER keep_b BEFORE DELETE ON ${table}`, keepB);
    const message = new RegExp(`b stays.*; already removed: row a of table public.${table}$`, "s");
    await expect(removeUntracked()).rejects.toThrow(message);
    expect(await idsIn(table)).toEqual(["b"]);

    await database.query(`DROP TRIGGER keep_b ON ${table}`);
    expect(await removeUntracked()).toHaveLength(1);
  });

  it("are left, as unmanaged, where what was made is to be left", async () => {
    const { table } = await createdRow(database);
    await removeUntracked([], true);
    expect(await idsIn(table)).toEqual(["default/sample-student"]);
    expect(await recordsOf(table)).toEqual([]);
  });

  it("are found without reading what others have", async () => {
    const crowd = `INSERT INTO kindstack_ownership.records (table_id, key, owner, description, incarnation)
      SELECT 0, n::text, 'uid-' || n, 'crowd', n::text FROM generate_series(1, 10000) n`;
    await database.query(`${crowd}; ANALYZE kindstack_ownership.records`);
    for (const column of ["owner", "incarnation"]) {
      const plan = await database.query(`EXPLAIN SELECT * FROM kindstack_ownership.records WHERE ${column} = 'uid-7'`);
      expect(JSON.stringify(plan)).toContain(`records_by_${column}`);
    }
    await database.query("DELETE FROM kindstack_ownership.records WHERE table_id = 0");
  });
});
