import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import type { Client } from "pg";
import { describe, expect, it } from "vitest";
import type { Observations } from "../../../providers/observation";
import { ROW_STUB } from "../../../providers/postgres/row";
import type { RowInputs, RowOutputs } from "../../../providers/postgres/row-inputs";
import { heldCalls, outdated, type Write } from "../held-calls";
import { rowIn, useDatabase } from "./database";
import { createdRow } from "./rows";

const database = useDatabase();

const { observe, write, writeAll } = heldCalls(ROW_STUB);
const KEY = "default/sample-student";
const rowsOf = (table: string) => database.rowsOf(table);
const creation = (news: RowInputs, name = "a"): Write => ({ call: "Create", news, name });
const made = async (inputs: RowInputs) => (await write(undefined, creation(inputs))) as RowOutputs;
const deletion = (olds: RowOutputs): Write => ({ call: "Delete", olds });

/** A table with the row, and the update of its age. */
async function agingRow(columns?: string): Promise<{ table: string; outs: RowOutputs; update: Write }> {
  const { table, outs } = await createdRow(database, columns);
  const news = rowIn(table, { values: { ...outs.values, age: 24 } });
  return { table, outs, update: { call: "Update", olds: outs, news } };
}

/** A table, and the creation of the row, with what a preview has observed of that. */
async function newRow(): Promise<{ table: string; create: Write; observed: Observations }> {
  const table = await database.createStudents();
  const create = creation(rowIn(table));
  return { table, create, observed: await observe(create) };
}

/** Another session's transaction, which is committed when a held write waits for it. */
async function during(statement: string, work: () => Promise<unknown>): Promise<unknown> {
  const other: Client = await database.connect();
  try {
    await other.query(`BEGIN; ${statement}`);
    const working = work().catch((error: unknown) => error);
    await expect.poll(() => database.query("SELECT FROM pg_locks WHERE NOT granted"), { interval: 10 }).not.toEqual([]);
    await other.query("COMMIT");
    return await working;
  } finally {
    await other.end();
  }
}

describe("a held update of a row", () => {
  it("writes nothing where a column that it writes has changed, and names it", async () => {
    const { table, update } = await agingRow();
    const observed = await observe(update);
    await database.query(`UPDATE ${table} SET country = 'mexico'`);
    await expect(write(observed, update)).rejects.toMatchObject(outdated(/column "country"/));
    expect(await rowsOf(table)).toMatchObject([{ age: 23, country: "mexico" }]);
  });

  it("is not stopped by columns that are others'", async () => {
    const { table, update } = await agingRow("id text PRIMARY KEY, name text, age integer, country text, seen integer");
    const observed = await observe(update);
    await database.query(`UPDATE ${table} SET seen = 1`);
    await write(observed, update);
    expect(await rowsOf(table)).toMatchObject([{ age: 24, seen: 1 }]);
  });

  it("corrects the drift that it saw, and no other", async () => {
    const { table, update } = await agingRow();
    await database.query(`UPDATE ${table} SET country = 'mexico'`);
    const observed = await observe(update);
    await write(observed, update);
    expect(await rowsOf(table)).toMatchObject([{ age: 24, country: "canada" }]);
  });

  it("sees what another session commits between its look and its write", async () => {
    const { table, update } = await agingRow();
    const observed = await observe(update);
    const ended = await during(`UPDATE ${table} SET age = 30`, () => write(observed, update));
    expect(ended).toMatchObject(outdated(/column "age"/));
    expect(await rowsOf(table)).toMatchObject([{ age: 30 }]);
  });

  it("makes a row again that was gone when it looked, but overwrites none that comes meanwhile", async () => {
    const { table, update } = await agingRow();
    await database.query(`DELETE FROM ${table}`);
    const observed = await observe(update);
    const insert = `INSERT INTO ${table} VALUES ('${KEY}', 'other', 1, 'peru')`;
    expect(await during(insert, () => write(observed, update))).toMatchObject(outdated());
    expect(await rowsOf(table)).toMatchObject([{ name: "other" }]);
    await database.query(`DELETE FROM ${table}`);
    await write(observed, update);
    expect(await rowsOf(table)).toMatchObject([{ age: 24 }]);
  });

  it("does not make a row again that has gone since", async () => {
    const { table, update } = await agingRow();
    const observed = await observe(update);
    await database.query(`DELETE FROM ${table}`);
    await expect(write(observed, update)).rejects.toMatchObject(outdated());
    expect(await rowsOf(table)).toEqual([]);
  });

  it("is repeated after a crash, as what it wrote is as it is to be", async () => {
    const { table, update } = await agingRow("id text PRIMARY KEY, name text, age numeric(6, 2), country text");
    const observed = await observe(update);
    await write(observed, update);
    await write(observed, update);
    await database.query(`UPDATE ${table} SET age = 25`);
    await expect(write(observed, update)).rejects.toMatchObject(outdated());
  });

  it("overwrites exactly what it saw, or what is as it is to be, whatever happens in between", async () => {
    const table = await database.createStudents();
    const columns = { name: fc.constantFrom("a", "b"), age: fc.constantFrom(1, 2, null) };
    const values = fc.record(columns, { noNullPrototype: true });
    let row = 0;
    await fc.assert(
      fc.asyncProperty(values, values, values, values, async (state, before, since, wanted) => {
        row++;
        const inputs = (of: RowInputs["values"]) => rowIn(table, { key: { id: `${row}` }, values: of });
        const edit = ({ name, age }: typeof before) =>
          database.query(`UPDATE ${table} SET name = $1, age = $2 WHERE id = $3`, [name, age, `${row}`]);
        const change: Write = { call: "Update", olds: await made(inputs(state)), news: inputs(wanted) };
        await edit(before);
        const observed = await observe(change);
        await edit(since);
        const isAdmitted = [before, wanted].some((one) => isDeepStrictEqual(one, since));
        const ended = await write(observed, change).catch((error: unknown) => error);
        if (!isAdmitted) expect(ended).toMatchObject(outdated());
        const [live] = await database.query(`SELECT name, age FROM ${table} WHERE id = $1`, [`${row}`]);
        expect(live).toEqual(isAdmitted ? wanted : since);
      }),
      { numRuns: 40 },
    );
  });

  it("refuses a row that was handed to another owner", async () => {
    const { update } = await agingRow();
    const observed = await observe(update);
    await database.query("UPDATE kindstack_ownership.records SET owner = 'uid-9'");
    await expect(write(observed, update)).rejects.toMatchObject(outdated());
  });

  it("follows a table that was renamed", async () => {
    const { table, update } = await agingRow();
    const observed = await observe(update);
    await database.query(`ALTER TABLE ${table} RENAME TO ${table}_new`);
    await write(observed, update);
    expect(await rowsOf(`${table}_new`)).toMatchObject([{ age: 24 }]);
  });

  it("writes through a view that has taken the table's name, as it was when it looked", async () => {
    const { table, update } = await agingRow();
    await database.query(`ALTER TABLE ${table} RENAME TO ${table}_all; CREATE VIEW ${table} AS TABLE ${table}_all`);
    const observed = await observe(update);
    await write(observed, update);
    expect(await rowsOf(table)).toMatchObject([{ age: 24 }]);
  });
});

describe("a held creation of a row", () => {
  it("makes what was not there", async () => {
    const { table, create, observed } = await newRow();
    await write(observed, create);
    expect(await rowsOf(table)).toHaveLength(1);
  });

  it("was observed also before there was a table, or a record of any row", async () => {
    const table = "students_later";
    const create = creation(rowIn(table));
    const observed = await observe(create);
    await database.query(`CREATE TABLE ${table} (id text PRIMARY KEY, name text, age integer, country text)`);
    await write(observed, create);
    expect(await rowsOf(table)).toHaveLength(1);
  });

  it("leaves what has appeared as it is", async () => {
    const { table, create, observed } = await newRow();
    await database.query(`INSERT INTO ${table} VALUES ('${KEY}', 'other', 1, 'peru')`);
    await expect(write(observed, create)).rejects.toMatchObject(outdated());
    expect(await rowsOf(table)).toMatchObject([{ name: "other" }]);
  });

  it("leaves also what appears between its look and its write", async () => {
    const { table, create, observed } = await newRow();
    const insert = `INSERT INTO ${table} VALUES ('${KEY}', 'other', 1, 'peru')`;
    expect(await during(insert, () => write(observed, create))).toMatchObject(outdated());
    expect(await rowsOf(table)).toMatchObject([{ name: "other" }]);
  });

  it("is repeated after a crash, and is observed as if it had never been", async () => {
    const { table, create, observed } = await newRow();
    await write(observed, create);
    expect(await observe(create)).toEqual(observed);
    await write(observed, create);
    await database.query(`UPDATE ${table} SET age = 99`);
    await expect(write(observed, create)).rejects.toMatchObject(outdated());
    expect(await rowsOf(table)).toMatchObject([{ age: 99 }]);
  });

  it("is observed of a value that the column does not take, which the write then tells", async () => {
    const table = await database.createStudents();
    const create = creation(rowIn(table, { values: { age: "many" } }));
    await expect(write(await observe(create), create)).rejects.toMatchObject({ errorClass: "terminal" });
  });
});

describe("a held deletion of a row", () => {
  it("deletes what is as it was, and what is gone already", async () => {
    const { table, outs } = await agingRow();
    const observed = await observe(deletion(outs));
    await write(observed, deletion(outs));
    await write(observed, deletion(outs));
    expect(await rowsOf(table)).toEqual([]);
  });

  it("leaves what has changed, with its record", async () => {
    const { table, outs } = await agingRow();
    const observed = await observe(deletion(outs));
    await database.query(`UPDATE ${table} SET country = 'mexico'`);
    await expect(write(observed, deletion(outs))).rejects.toMatchObject(outdated(/column "country"/));
    expect(await rowsOf(table)).toHaveLength(1);
    await write(await observe(deletion(outs)), deletion(outs));
    expect(await rowsOf(table)).toEqual([]);
  });

  it("sees what another session commits between its look and its write", async () => {
    const { table, outs } = await agingRow();
    const observed = await observe(deletion(outs));
    const ended = await during(`UPDATE ${table} SET age = 30`, () => write(observed, deletion(outs)));
    expect(ended).toMatchObject(outdated());
    expect(await rowsOf(table)).toMatchObject([{ age: 30 }]);
  });
});

describe("several held rows of a table", () => {
  it("are written together, without the one that has changed", async () => {
    const table = await database.createStudents();
    const inputs = (id: number, age: number) => rowIn(table, { key: { id: `default/${id}` }, values: { age } });
    const ids = Array.from({ length: 30 }, (_, id) => id);
    const outs = await writeAll(undefined, ...ids.map((id) => creation(inputs(id, 1), `${id}`)));
    const updates = ids.map((id): Write => {
      return { call: "Update", name: `${id}`, olds: outs[id] as object, news: inputs(id, 2) };
    });
    const observed = await observe(...updates);
    await database.query(`UPDATE ${table} SET age = 7 WHERE id = 'default/11'`);
    const ended = await writeAll(observed, ...updates);
    expect(ended[11]).toMatchObject(outdated(/"default\/11"/));
    expect(ended.filter((end) => end instanceof Error)).toHaveLength(1);
    expect(await database.query(`SELECT id FROM ${table} WHERE age <> 2`)).toEqual([{ id: "default/11" }]);
  });
});
