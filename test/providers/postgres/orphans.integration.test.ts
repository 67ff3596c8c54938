import { describe, expect, it } from "vitest";
import { provider, removeUntrackedRows } from "../../../providers/postgres/row";
import type { RowInputs, RowOutputs } from "../../../providers/postgres/row-inputs";
import { RECORDS, rowIn, useDatabase } from "./database";

const database = useDatabase();
const OWNER = rowIn("students").owner;
const OTHER = { uid: "uid-other", description: "PostgresWriter.demo.yash.com/default/other" };

const create = async (inputs: RowInputs): Promise<RowOutputs> => (await provider.create(inputs)).outs;
const idsIn = async (table: string) =>
  (await database.query(`SELECT id FROM ${table} ORDER BY id`)).map(({ id }) => id);
const records = () => database.query(`SELECT table_name, key FROM ${RECORDS} ORDER BY 1, 2`);

describe("rows of an owner that no state knows", () => {
  it("are none before any owner had a row", async () => {
    await removeUntrackedRows(OWNER, "id", [], { release: false }, undefined);
  });

  it("are deleted with their records; what the state knows stays, and so does what is others'", async () => {
    const before = await database.createStudents();
    const now = await database.createStudents();
    await create(rowIn(before)); // by an update that was cut off before it was saved; then the table was changed
    const kept = await create(rowIn(now));
    await create(rowIn(before, { key: { id: "default/other" }, owner: OTHER }));
    await database.query(`INSERT INTO ${before} VALUES ('default/foreign', 'anna', 30, 'france')`);

    const options = { release: false };
    const removed = await removeUntrackedRows(OWNER, "id", [{ manifest: {} }, { ...kept }], options, undefined);
    expect(removed).toEqual([`row default/sample-student of table public.${before}`]);

    expect(await idsIn(before)).toEqual(["default/foreign", "default/other"]);
    expect(await idsIn(now)).toEqual(["default/sample-student"]);
    expect(await records()).toEqual(
      [
        { table_name: before, key: "default/other" },
        { table_name: now, key: "default/sample-student" },
      ].sort((a, b) => (a.table_name < b.table_name ? -1 : 1)),
    );
    await provider.delete("id", kept);
  });

  it("are deleted in their own schema, whatever another one has under the same names", async () => {
    const table = await database.createStudents();
    await database.query(`CREATE SCHEMA app; CREATE TABLE app.${table} (LIKE ${table} INCLUDING ALL)`);
    await create(rowIn(`app.${table}`));
    await database.query(`INSERT INTO ${table} SELECT * FROM app.${table}`);
    await removeUntrackedRows(OWNER, "id", [], { release: false }, undefined);
    expect(await idsIn(`app.${table}`)).toEqual([]);
    expect(await idsIn(table)).toEqual(["default/sample-student"]);
  });

  it("are forgotten where their table is gone", async () => {
    const table = await database.createStudents();
    await create(rowIn(table));
    await database.query(`DROP TABLE ${table}`);
    await removeUntrackedRows(OWNER, "id", [], { release: false }, undefined);
    expect((await records()).filter(({ table_name }) => table_name === table)).toEqual([]);
  });

  it("are named, where one of them cannot be deleted: no later try would name those before it", async () => {
    const table = await database.createStudents();
    for (const id of ["a", "b"]) await create(rowIn(table, { key: { id } }));
    await database.query(
      `CREATE FUNCTION keep_b() RETURNS trigger LANGUAGE plpgsql AS
       $$ BEGIN IF OLD.id = 'b' THEN RAISE EXCEPTION 'b stays'; END IF; RETURN OLD; END $$;
       CREATE TRIGGER keep_b BEFORE DELETE ON ${table} FOR EACH ROW EXECUTE FUNCTION keep_b()`,
    );
    const removing = removeUntrackedRows(OWNER, "id", [], { release: false }, undefined);
    await expect(removing).rejects.toThrow(
      new RegExp(`b stays.*; already removed: row a of table public.${table}$`, "s"),
    );
    expect(await idsIn(table)).toEqual(["b"]);

    await database.query(`DROP TRIGGER keep_b ON ${table}; DROP FUNCTION keep_b`);
    expect(await removeUntrackedRows(OWNER, "id", [], { release: false }, undefined)).toHaveLength(1);
  });

  it("are left, as unmanaged, where what was made is to be left", async () => {
    const table = await database.createStudents();
    await create(rowIn(table));
    await removeUntrackedRows(OWNER, "id", [], { release: true }, undefined);
    expect(await idsIn(table)).toEqual(["default/sample-student"]);
    expect((await records()).filter(({ table_name }) => table_name === table)).toEqual([]);
  });

  it("are found without reading what others have", async () => {
    const crowd = `INSERT INTO kindstack_ownership.records (table_id, key, owner, description, incarnation)
      SELECT 0, n::text, 'uid-' || n, 'crowd', n::text FROM generate_series(1, 10000) n`;
    await database.query(`${crowd}; ANALYZE kindstack_ownership.records`);
    for (const [column, index] of [
      ["owner", "records_by_owner"],
      ["incarnation", "records_by_incarnation"],
    ]) {
      const plan = await database.query(`EXPLAIN SELECT * FROM kindstack_ownership.records WHERE ${column} = 'uid-7'`);
      expect(JSON.stringify(plan)).toContain(index);
    }
    await database.query("DELETE FROM kindstack_ownership.records WHERE table_id = 0");
  });
});
