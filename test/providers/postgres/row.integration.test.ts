import type { Client } from "pg";
import { afterEach, describe, expect, it, vi } from "vitest";
import { LOCK_TIMEOUT_MS } from "../../../providers/postgres/configuration";
import { findDriftedRows } from "../../../providers/postgres/drift";
import { sqlStateOf } from "../../../providers/postgres/errors";
import { Connection, closePool, withReadTransaction } from "../../../providers/postgres/pool";
import { provider } from "../../../providers/postgres/row";
import type { RowInputs, RowOutputs } from "../../../providers/postgres/row-inputs";
import { inspectRow } from "../../../providers/postgres/row-inspection";
import { eventually } from "../../../src/testing/eventually";
import { errorOf, retryable, terminal } from "../failures";
import { rowIn, useDatabase } from "./database";
import { create, createdRow, driftOf, read, release, remove, sqlAfter, update } from "./rows";

const database = useDatabase();
const ALEX = { id: "default/sample-student", name: "alex", age: 23, country: "canada" };
const OTHER_OWNER = { uid: "uid-2", description: "PostgresWriter.demo.yash.com/default/other" };

afterEach(() => {
  vi.restoreAllMocks();
  database.use();
});

const rowsOf = (table: string) => database.rowsOf(table);
const recordsOf = (table: string) => database.recordsOf(table);
const conflict = (message: string | RegExp) => retryable("RowConflict", message);

/** What failed, by its index. */
const failuresOf = (results: PromiseSettledResult<unknown>[]) =>
  results.flatMap((result, index) => (result.status === "rejected" ? [[index, result.reason] as const] : []));

/** A session that has done this in a transaction, which ends with it. */
async function lock(statement: string): Promise<Client> {
  const client = await database.connect();
  await client.query(`SET application_name = 'holder'; BEGIN; ${statement}`);
  return client;
}

/** How long transactions wait in vain for locks from now on, in ms, all of them together. */
function countLockWaits(): { ms: number } {
  const waits = { ms: 0 };
  const timeouts = new WeakMap<Connection, number>();
  const { begin, query } = Connection.prototype;
  vi.spyOn(Connection.prototype, "begin").mockImplementation(function (this: Connection, text) {
    timeouts.set(this, Number(/lock_timeout = (\d+)/.exec(text)?.[1]));
    begin.call(this, text);
  });
  vi.spyOn(Connection.prototype, "query").mockImplementation(async function (this: Connection, ...statement) {
    return query.apply(this, statement).catch((error: unknown) => {
      if (sqlStateOf(error) === "55P03") waits.ms += timeouts.get(this) ?? Number.NaN;
      throw error;
    });
  });
  return waits;
}

describe("the ownership records", () => {
  it("are made when they are first needed, by however many at once", async () => {
    const table = await database.createStudents();
    const keys = Array.from({ length: 20 }, (_, index) => `default/${index}`);
    await Promise.all(keys.map((id) => create(rowIn(table, { key: { id } }))));
    expect(await rowsOf(table)).toHaveLength(20);
    expect(await recordsOf(table)).toHaveLength(20);
  });

  it("tell the administrator what to run where Kindstack may not make them", async () => {
    const table = await database.createStudents();
    await database.query("ALTER SCHEMA kindstack_ownership RENAME TO kindstack_aside");
    await database.useAs(await database.createRole("writer", `GRANT ALL ON ${table} TO %`));
    try {
      const refusal = await errorOf(create(rowIn(table)));
      expect(refusal).toEqual(retryable("OwnershipTableMissing", /^permission denied for database/));
      await database.query(refusal.message.slice(refusal.message.indexOf("CREATE SCHEMA")));
      await create(rowIn(table));
      expect(await rowsOf(table)).toEqual([ALEX]);
    } finally {
      await closePool();
      await database.query("DROP SCHEMA IF EXISTS kindstack_ownership CASCADE");
      await database.query("ALTER SCHEMA kindstack_aside RENAME TO kindstack_ownership");
    }
  });
});

describe("create", () => {
  it("writes the row and names it by table and key", async () => {
    const table = await database.createStudents();
    const inputs = rowIn(table);
    const { id, outs } = await provider.create(inputs);
    expect(id).toBe(`public.${table}/default/sample-student`);
    const location = { schema: "public", name: table };
    expect(outs).toEqual({ ...inputs, location, incarnation: expect.stringMatching(/./) });
    expect(await rowsOf(table)).toEqual([ALEX]);
  });

  it("takes over what an earlier creation left whose end was not recorded", async () => {
    const table = await database.createStudents();
    await create(rowIn(table));
    const outs = await create(rowIn(table, { values: { name: "alex", age: 24, country: "canada" } }));
    expect(outs.created).toBe(false); // the history says that it was adopted
    expect(await rowsOf(table)).toEqual([{ ...ALEX, age: 24 }]);
    await database.query(`DELETE FROM ${table}`);
    expect(await create(rowIn(table))).not.toHaveProperty("created");
    await create(rowIn(table, { values: { name: "alex", age: 24, country: "canada" } }));
    expect(await recordsOf(table)).toHaveLength(1);
  });

  it("makes one row when many make the same one at once", async () => {
    const table = await database.createStudents();
    await Promise.all(Array.from({ length: 20 }, () => create(rowIn(table))));
    expect(await rowsOf(table)).toEqual([ALEX]);
    expect(await recordsOf(table)).toHaveLength(1);
  });

  it("gives a row that several want to one of them, and tells the others who has it", async () => {
    const table = await database.createStudents();
    const owners = Array.from({ length: 8 }, (_, index) => ({ uid: `uid-${index}`, description: `Writer ${index}` }));
    const results = await Promise.allSettled(owners.map((owner) => create(rowIn(table, { owner }))));
    const [winner] = results.flatMap((result) => (result.status === "fulfilled" ? [result.value.owner] : []));
    const taken = conflict(`belongs to ${winner?.description} \\(UID ${winner?.uid}\\)`);
    const losses = failuresOf(results).map(([, reason]) => reason);
    expect(losses).toEqual(Array.from({ length: 7 }, () => taken));
    expect(await rowsOf(table)).toEqual([ALEX]);
  });

  it("leaves a row alone that another client made", async () => {
    const table = await database.createStudents();
    await database.query(`INSERT INTO ${table} VALUES ('default/sample-student', 'bob', 1, 'peru')`);
    const message = /^row "default\/sample-student" of table public\.students_\w+ belongs to no object/;
    await expect(create(rowIn(table))).rejects.toEqual(conflict(message));
    expect(await rowsOf(table)).toEqual([{ id: "default/sample-student", name: "bob", age: 1, country: "peru" }]);
    expect(await recordsOf(table)).toEqual([]);
  });

  it("leaves columns that it was not given to their defaults", async () => {
    const table = await database.createStudents("id text PRIMARY KEY, name text, note text DEFAULT 'new'");
    await create(rowIn(table, { values: { name: "alex" } }));
    expect(await rowsOf(table)).toEqual([{ id: "default/sample-student", name: "alex", note: "new" }]);
  });
});

describe("update", () => {
  it("writes the new values", async () => {
    const { table, outs } = await createdRow(database);
    const news = rowIn(table, { values: { name: "alex", age: 24, country: null } });
    expect(await update(outs, news)).toEqual({ ...outs, values: news.values });
    expect(await rowsOf(table)).toEqual([{ ...ALEX, age: 24, country: null }]);
  });

  it.each(["the row", "the record", "both"])("writes again when %s was deleted by hand", async (what) => {
    const { table, outs } = await createdRow(database);
    if (what !== "the record") await database.query(`DELETE FROM ${table}`);
    if (what !== "the row") await database.forgetRecords(table);
    await update(outs, rowIn(table));
    expect(await rowsOf(table)).toEqual([ALEX]);
    expect(await recordsOf(table)).toEqual([expect.objectContaining({ owner: "uid-1", key: ALEX.id })]);
  });

  it("hands the row over to the owner that the program now names", async () => {
    const { table, outs } = await createdRow(database);
    await update(outs, rowIn(table, { owner: OTHER_OWNER }));
    expect(await recordsOf(table)).toMatchObject([{ owner: "uid-2" }]);
    await remove(outs); // its end was not recorded
    expect(await rowsOf(table)).toEqual([]);
  });

  it("leaves a row alone that another client has taken since", async () => {
    const { table, outs } = await createdRow(database);
    await remove(outs);
    await create(rowIn(table, { owner: OTHER_OWNER, values: { name: "bob" } }));
    await expect(update(outs, rowIn(table))).rejects.toEqual(conflict("uid-2"));
    expect(await rowsOf(table)).toEqual([{ id: ALEX.id, name: "bob", age: null, country: null }]);
  });

  it("tells of a name that means another table than that of the row", async () => {
    const { table, outs } = await createdRow(database);
    await database.query(`CREATE SCHEMA aside; ALTER TABLE ${table} SET SCHEMA aside`);
    await database.query(`CREATE TABLE ${table} (LIKE aside.${table} INCLUDING ALL)`);
    await expect(update(outs, rowIn(table))).rejects.toEqual(retryable("TableReplaced", `aside.${table}`));
    expect([await rowsOf(table), await rowsOf(`aside.${table}`)]).toEqual([[], [ALEX]]);

    // A refresh alone finds it as well, and nothing to tell of where the object names the former table.
    const seen = (await read(outs)) as RowOutputs;
    expect(await provider.diff("id", seen, rowIn(table))).toMatchObject({ changes: true, replaces: [] });
    const named = rowIn(`aside.${table}`);
    expect(await provider.diff("id", seen, named)).toMatchObject({ changes: true, replaces: [] });
    await update(seen, named);
    expect([await rowsOf(table), await rowsOf(`aside.${table}`)]).toEqual([[], [ALEX]]);
  });
});

describe("read", () => {
  it("shows what is there where it differs", async () => {
    const { table, outs } = await createdRow(database);
    await database.query(`UPDATE ${table} SET age = 99, country = NULL`);
    const found = await read(outs);
    expect(found?.values).toEqual({ name: "alex", age: "99", country: null });
    expect(await provider.diff("id", found as RowOutputs, rowIn(table))).toMatchObject({ changes: true, replaces: [] });
  });

  it.each(["DELETE FROM", "DROP TABLE"])("finds nothing after %s", async (statement) => {
    const { table, outs } = await createdRow(database);
    await database.query(`${statement} ${table}`);
    expect(await provider.read("id", outs)).toEqual({});
  });

  it("takes a value that the column's present type has no notion of as different", async () => {
    const { table, outs } = await createdRow(database);
    await database.query(`ALTER TABLE ${table} ALTER name TYPE integer USING 7`);
    expect((await read(outs))?.values).toEqual({ name: "7", age: "23", country: "canada" });
  });
});

describe("diff", () => {
  it("sees no change in the same inputs", async () => {
    const { table, outs } = await createdRow(database);
    expect(await provider.diff("id", outs, rowIn(table))).toMatchObject({ changes: false });
  });

  it("replaces for another table and another key, making the new row first", async () => {
    const { table, outs } = await createdRow(database);
    const replaced = (...replaces: string[]) => ({ changes: true, replaces, deleteBeforeReplace: false });
    expect(await provider.diff("id", outs, rowIn(await database.createStudents()))).toEqual(replaced("table"));
    expect(await provider.diff("id", outs, rowIn("missing"))).toEqual(replaced("table"));
    expect(await provider.diff("id", outs, rowIn(table, { key: { id: "x" } }))).toEqual(replaced("key"));
  });

  it("updates in place when another name means the same table", async () => {
    const { table, outs } = await createdRow(database);
    expect(await provider.diff("id", outs, rowIn(`public.${table}`))).toMatchObject({ changes: true, replaces: [] });
  });
});

describe("many rows at once", () => {
  const keys = Array.from({ length: 100 }, (_, index) => `default/${String(index).padStart(3, "0")}`);

  it("are written, changed and deleted", async () => {
    const table = await database.createStudents();
    const rows = await Promise.all(keys.map((id, age) => create(rowIn(table, { key: { id }, values: { age } }))));
    expect(await rowsOf(table)).toEqual(keys.map((id, age) => ({ id, age, name: null, country: null })));

    await Promise.all(rows.map((row, age) => update(row, { ...row, values: { age: age + 1 } })));
    expect(await rowsOf(table)).toEqual(keys.map((id, age) => ({ id, age: age + 1, name: null, country: null })));

    await Promise.all(rows.map(remove));
    expect(await rowsOf(table)).toEqual([]);
    expect(await recordsOf(table)).toEqual([]);
  });

  it("fail each for itself", async () => {
    const table = await database.createStudents();
    await database.query(`INSERT INTO ${table} VALUES ('${keys[20]}', 'bob', 1, 'peru')`);
    await create(rowIn(table, { key: { id: keys[30] as string }, owner: OTHER_OWNER }));
    const ageOf = (index: number) => (index === 10 ? "old" : 3);

    const results = await Promise.allSettled(
      keys.map((id, index) => create(rowIn(table, { key: { id }, values: { age: ageOf(index) } }))),
    );

    expect(failuresOf(results)).toEqual([
      [10, terminal("WrongType", /type integer: "old"/)],
      [20, conflict(`^row "${keys[20]}" .* belongs to no object`)],
      [30, conflict(`^row "${keys[30]}" .* belongs to ${OTHER_OWNER.description}`)],
    ]);
    expect(await rowsOf(table)).toHaveLength(99);
    expect(await recordsOf(table)).toHaveLength(98);
  });

  it("take over those that an earlier creation left beside those that are new", async () => {
    const table = await database.createStudents();
    await Promise.all(keys.slice(0, 50).map((id) => create(rowIn(table, { key: { id }, values: { age: 1 } }))));

    await Promise.all(keys.map((id) => create(rowIn(table, { key: { id }, values: { age: 2 } }))));

    expect(await rowsOf(table)).toEqual(keys.map((id) => ({ id, age: 2, name: null, country: null })));
  });

  it("fail alone where another client has locked their row", async () => {
    const table = await database.createStudents();
    const rows = await Promise.all(keys.slice(0, 8).map((id) => create(rowIn(table, { key: { id } }))));
    const locker = await lock(`SELECT FROM ${table} WHERE id = '${keys[3]}' FOR UPDATE`);
    const updates = rows.map((row) => update(row, { ...row, values: { age: 1 } }));
    const results = await Promise.allSettled(updates).finally(() => locker.end());
    const message = new RegExp(`^row "${keys[3]}" of table ${table}: locked by process \\d+ \\(application "holder"`);
    expect(failuresOf(results)).toEqual([[3, retryable("LockTimeout", message)]]);
  });

  it("may have many columns", async () => {
    const names = Array.from({ length: 1_500 }, (_, index) => `c${index}`);
    const table = await database.createStudents(["id text PRIMARY KEY", ...names.map((name) => `${name} int`)].join());
    const values = Object.fromEntries(names.map((name, index) => [name, index]));

    await Promise.all(keys.map((id) => create(rowIn(table, { key: { id }, values }))));

    const [sums] = await database.query(`SELECT count(*)::int AS rows, sum(c1499)::int AS sum FROM ${table}`);
    expect(sums).toEqual({ rows: 100, sum: 149_900 });
  });

  it.each(["text", "integer", "numeric(9,2)", "char(12)", "uuid", "date", "inet"])(
    "are deleted together, by a key of the type %s",
    async (type) => {
      const table = await database.createStudents(`id ${type} PRIMARY KEY, name text, age integer, country text`);
      const keyOf = (index: number) => {
        if (type === "uuid") return `00000000-0000-4000-8000-${String(index).padStart(12, "0")}`;
        if (type === "date") return `2026-01-${String(index + 1).padStart(2, "0")}`;
        if (type === "inet") return `10.0.0.${index}`;
        return type === "text" || type.startsWith("char") ? `a"{,\\'${index}` : String(index);
      };
      const ids = Array.from({ length: 30 }, (_, index) => keyOf(index));
      const rows = await Promise.all(ids.map((id) => create(rowIn(table, { key: { id } }))));
      const statements = vi.spyOn(Connection.prototype, "query");

      await Promise.all(rows.map(remove));

      const deletions = statements.mock.calls.filter(([text]) => text.includes(`DELETE FROM public.${table}`));
      expect(deletions.length).toBeLessThan(5);
      expect([...(await rowsOf(table)), ...(await recordsOf(table))]).toEqual([]);
    },
  );

  it("are deleted but for those that the database keeps, or another client has locked", async () => {
    const table = await database.createStudents();
    const rows = await Promise.all(keys.slice(0, 40).map((id) => create(rowIn(table, { key: { id } }))));
    await database.query(`DELETE FROM ${table} WHERE id = '${keys[1]}'`);
    const keepsFifth = `IF OLD.id = '${keys[5]}' THEN RETURN NULL; END IF; RETURN OLD;`;
    await database.createTrigger(`CREATE TRIGGER keep BEFORE DELETE ON ${table}`, keepsFifth);
    const locker = await lock(`SELECT FROM ${table} WHERE id = '${keys[9]}' FOR UPDATE`);
    const results = await Promise.allSettled(rows.map(remove)).finally(() => locker.end());

    expect(failuresOf(results)).toEqual([
      [5, retryable("WriteSuppressed", "trigger keep")],
      [9, retryable("LockTimeout", `^row "${keys[9]}" of table ${table}: locked by`)],
    ]);
    expect(await rowsOf(table)).toEqual([keys[5], keys[9]].map((id) => expect.objectContaining({ id })));
    expect((await recordsOf(table)).map(({ key }) => key)).toEqual([keys[5], keys[9]]);
  });

  it("are deleted although the table of some is gone", async () => {
    const [kept, dropped] = [await database.createStudents(), await database.createStudents()];
    const tables = keys.map((_, index) => (index % 2 === 0 ? kept : dropped));
    const rows = await Promise.all(keys.map((id, index) => create(rowIn(tables[index] as string, { key: { id } }))));
    await database.query(`DROP TABLE ${dropped}`);

    await Promise.all(rows.map(remove));

    expect(await rowsOf(kept)).toEqual([]);
    expect([...(await recordsOf(kept)), ...(await recordsOf(dropped))]).toEqual([]);
  });
});

describe("a table that another session has locked", () => {
  const keys = Array.from({ length: 60 }, (_, index) => `default/${String(index).padStart(3, "0")}`);

  it.each([
    ["as a whole", "LOCK TABLE % IN ACCESS EXCLUSIVE MODE"],
    ["against writes", "LOCK TABLE % IN SHARE MODE"],
    ["row by row", "SELECT FROM % FOR UPDATE"],
    ["with the records of ownership", "LOCK TABLE kindstack_ownership.records IN ACCESS EXCLUSIVE MODE"],
  ])(
    "%s, makes sixty rows wait no longer than one, whatever is asked of them, and holds up no other table",
    async (how, statement) => {
      const [table, other] = [await database.createStudents(), await database.createStudents()];
      const rows = await Promise.all(keys.map((id) => create(rowIn(table, { key: { id } }))));
      const others = await create(rowIn(other));
      const locker = await lock(statement.replace("%", table));
      const change = (row: RowOutputs) => update(row, { ...row, values: { age: 1 } });
      const wholeTable = how === "as a whole";
      try {
        await change(rows[0] as RowOutputs).catch(() => {});
        const waits = countLockWaits();
        for (const ask of [change, remove, ...(wholeTable ? [read] : [])]) {
          waits.ms = 0;
          const results = Promise.allSettled(rows.map((row) => ask(row)));
          if (how !== "with the records of ownership") await update(others, rowIn(other, { values: { age: 7 } }));
          const waitsBefore = waits.ms;
          const failures = failuresOf(await results).map(([, failure]) => failure);
          const locked = retryable("LockTimeout", /locked by process \d+ \(application "holder", user/);
          expect(failures).toEqual(keys.map(() => locked));
          expect(waits.ms).toBeLessThan((keys.length * LOCK_TIMEOUT_MS) / 5); // a fifth of one after the other
          if (wholeTable) expect(waitsBefore).toBeLessThanOrEqual(LOCK_TIMEOUT_MS);
        }
      } finally {
        await locker.end();
      }
      await eventually(() => update(rows[0] as RowOutputs, rowIn(table, { key: { id: keys[0] as string } })));
    },
  );

  it("in which DDL waits, is described as that", async () => {
    const { table, outs } = await createdRow(database);
    const reader = await lock(`SELECT FROM ${table}`);
    const migration = await database.connect();
    const altered = migration.query(`ALTER TABLE ${table} ADD note text`);
    try {
      const locked = retryable("LockTimeout", `^table ${table} is locked by process .*, which waits for others$`);
      await eventually(() => expect(update(outs, rowIn(table))).rejects.toEqual(locked));
    } finally {
      await reader.end();
      await altered;
      await migration.end();
    }
  });

  it("is compared when it can be again", async () => {
    const [table, other] = [await database.createStudents(), await database.createStudents()];
    const wanted = [table, other].map((uid) => ({ ...rowIn(uid, { owner: { uid, description: "" } }), uid }));
    await Promise.all(wanted.map(create));
    await database.query(`UPDATE ${other} SET age = 99`);
    const locker = await lock(`LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`);
    const { drifted, unknown } = await findDriftedRows(wanted).finally(() => locker.end());
    expect([...drifted.keys()]).toEqual([other]);
    expect([...unknown]).toEqual([[table, retryable("LockTimeout", `^table ${table} is locked by`)]]);
    await eventually(async () => expect((await findDriftedRows(wanted)).unknown.size).toBe(0));
  });
});

describe("an object that was made again", () => {
  const owner = { ...rowIn("").owner, uid: "uid-old", cluster: { name: "one", uid: "1" } };
  const successor = { ...owner, uid: "uid-new" };

  it("takes its row over, which the former object's late update and delete then leave alone", async () => {
    const table = await database.createStudents();
    const former = await create(rowIn(table, { owner }));
    await create(rowIn(table, { owner: successor, values: { name: "eve", age: 1, country: "peru" } }));
    const row = { id: ALEX.id, name: "eve", age: 1, country: "peru" };
    expect(await rowsOf(table)).toEqual([row]);
    await remove(former);
    await release(former);
    expect(await rowsOf(table)).toEqual([row]);
    expect(await recordsOf(table)).toMatchObject([{ owner: "uid-new" }]);
  });

  it("takes its row over from a state that recorded it once before", async () => {
    const table = await database.createStudents();
    const first = await create(rowIn(table, { owner }));
    await create(rowIn(table, { owner: successor }));
    const third = await update(first, rowIn(table, { owner: { ...owner, uid: "uid-3" }, values: { name: "eve" } }));
    await remove(third);
    expect(await rowsOf(table)).toEqual([]);
    expect(await recordsOf(table)).toEqual([]);
  });

  it.each([
    ["in another cluster", { ...successor, cluster: { name: "two", uid: "2" } }],
    ["in a cluster that is not known", rowIn("").owner],
  ])("%s is another one, until the row is handed over as the message says", async (_, other) => {
    const table = await database.createStudents();
    await create(rowIn(table, { owner }));
    const wanted = rowIn(table, { owner: other, values: { name: "eve" } });
    const refusal = await errorOf(create(wanted));
    expect(refusal).toEqual(conflict(`belongs to ${owner.description} in cluster one \\(UID uid-old\\); if that`));
    expect((await inspectRow(wanted, { owners: [other.uid] })).refusal?.message).toBe(refusal.message);
    expect(await rowsOf(table)).toEqual([ALEX]);

    await database.query(sqlAfter("transfer the row: ", refusal));
    expect((await inspectRow(wanted, { owners: [other.uid] })).refusal).toBeUndefined();
    await create(wanted);
    expect(await rowsOf(table)).toMatchObject([{ name: "eve" }]);
    await expect(create(rowIn(table, { owner }))).rejects.toEqual(conflict(other.uid));
  });

  it("is known by its cluster from its next update on, where an older record does not tell", async () => {
    const table = await database.createStudents();
    const { cluster: _, ...unknown } = owner;
    const outs = await create(rowIn(table, { owner: unknown }));
    await expect(create(rowIn(table, { owner: successor }))).rejects.toEqual(conflict("UID"));
    expect(await provider.diff("id", outs, rowIn(table, { owner }))).toMatchObject({ changes: true });
    await update(outs, rowIn(table, { owner }));
    await create(rowIn(table, { owner: successor }));
    const { description } = owner;
    expect(await recordsOf(table)).toMatchObject([{ owner: "uid-new", description, cluster: "one" }]);
  });

  it("of another name has no part in it, and can have the row by what its message says, which keeps the row", async () => {
    const table = await database.createStudents("id text PRIMARY KEY, name text, age int, country text, note text");
    const outs = await create(rowIn(table, { owner }));
    await database.query(`UPDATE ${table} SET note = 'kept'`);
    const wanted = rowIn(table, { owner: { ...owner, uid: "uid-2", description: `${owner.description}-2` } });
    const message = "or delete that object with the deletion policy Orphan, which keeps the row$";
    await expect(create(wanted)).rejects.toEqual(conflict(message));

    await release(outs);
    await database.query(sqlAfter("overwrites it: ", await errorOf(create(wanted))));
    await create(wanted);
    expect(await rowsOf(table)).toMatchObject([{ id: ALEX.id, note: "kept" }]);
    expect(await recordsOf(table)).toMatchObject([{ owner: "uid-2" }]);
  });
});

describe("an object of a rebuilt cluster", () => {
  const former = { ...rowIn("").owner, uid: "uid-old", cluster: { name: "prod", uid: "first" } };
  const rebuilt = { ...former, uid: "uid-new", cluster: { name: "prod", uid: "second" } };
  const wantedBy = (table: string, owner: typeof former) => rowIn(table, { owner, values: { name: owner.uid } });

  it("has a row by the SQL that a preview gave before there was the object", async () => {
    const table = await database.createStudents();
    await database.query(`INSERT INTO ${table} (id, name) VALUES ('${ALEX.id}', 'found')`);
    const previewed = wantedBy(table, { ...former, uid: "00000000-0000-0000-0000-000000000000" });
    const { refusal } = await inspectRow(previewed, { owners: [] });
    await database.query(sqlAfter("overwrites it: ", refusal));
    await create(wantedBy(table, former));
    expect(await recordsOf(table)).toMatchObject([{ owner: former.uid, cluster: "prod" }]);
  });

  it("takes its row over at once when the cluster has its former name", async () => {
    const table = await database.createStudents();
    await create(rowIn(table, { owner: former }));
    const wanted = wantedBy(table, rebuilt);
    expect((await inspectRow(wanted, { owners: [rebuilt.uid] })).refusal).toBeUndefined();
    await create(wanted);
    expect(await rowsOf(table)).toMatchObject([{ id: ALEX.id, name: "uid-new" }]);
    expect(await recordsOf(table)).toMatchObject([
      { owner: "uid-new", cluster: "prod", cluster_uid: "second", former_cluster_uids: ["first"] },
    ]);
  });

  it("that still lives is told of the other one, and neither overwrites the other", async () => {
    const table = await database.createStudents();
    const outs = await create(wantedBy(table, former));
    await create(wantedBy(table, rebuilt));
    const displaced = conflict(
      "in cluster prod \\(UID uid-new\\); a cluster with the UID second has taken over the name prod .* \\(KINDSTACK_CLUSTER\\)",
    );
    // Its drift is found, its refresh finds the row gone, and neither an update nor a creation takes the row back.
    expect(await driftOf(outs)).toBe('column "name" was "uid-new" in place of "uid-old"');
    expect(await read(outs)).toBeUndefined();
    await expect(update(outs, wantedBy(table, former))).rejects.toEqual(displaced);
    await expect(create(wantedBy(table, former))).rejects.toEqual(displaced);
    await expect(create(wantedBy(table, { ...former, uid: "uid-again" }))).rejects.toEqual(displaced);
    const { refusal } = await inspectRow(wantedBy(table, former), { owners: [former.uid], made: outs });
    expect(refusal?.message).toMatch(/has taken over the name prod/);
    await remove(outs);
    await release(outs);
    expect(await rowsOf(table)).toMatchObject([{ name: "uid-new" }]);
  });

  it("with the state of the former one does the same", async () => {
    const table = await database.createStudents();
    const outs = await create(wantedBy(table, former));
    await update(outs, wantedBy(table, rebuilt));
    await expect(update(outs, wantedBy(table, former))).rejects.toEqual(conflict("UID uid-new"));
    expect(await rowsOf(table)).toMatchObject([{ name: "uid-new" }]);
  });

  it("gets its row back by the statement of the message, and may lose it again", async () => {
    const table = await database.createStudents();
    await create(wantedBy(table, former));
    await create(wantedBy(table, rebuilt));
    const refusal = await errorOf(create(wantedBy(table, former)));
    await database.query(sqlAfter("transfer the row: ", refusal));
    await create(wantedBy(table, former));
    expect(await recordsOf(table)).toMatchObject([{ cluster_uid: "first", former_cluster_uids: ["second"] }]);
    await expect(create(wantedBy(table, rebuilt))).rejects.toEqual(conflict("taken over"));
  });

  it("whose cluster was given a name since is known by the cluster's UID", async () => {
    const table = await database.createStudents();
    await create(rowIn(table, { owner: { ...former, cluster: { name: "first", uid: "first" } } }));
    await create(rowIn(table, { owner: { ...former, uid: "uid-new" } }));
    expect(await recordsOf(table)).toMatchObject([{ owner: "uid-new", cluster: "prod", former_cluster_uids: [] }]);
  });

  it("of another name, or whose cluster is not known, takes nothing over", async () => {
    const table = await database.createStudents();
    await create(rowIn(table, { owner: former }));
    const { cluster: _, ...unknown } = rebuilt;
    const elsewhere = { ...rebuilt, cluster: { name: "test", uid: "second" } };
    for (const owner of [unknown, elsewhere, { ...rebuilt, description: `${rebuilt.description}-2` }]) {
      await expect(create(rowIn(table, { owner }))).rejects.toEqual(conflict("uid-old"));
    }
  });
});

describe("delete", () => {
  it("deletes the row and its record, and nothing else", async () => {
    const { table, outs } = await createdRow(database);
    await create(rowIn(table, { key: { id: "default/other" } }));
    await remove(outs);
    expect(await rowsOf(table)).toEqual([{ ...ALEX, id: "default/other" }]);
    expect(await recordsOf(table)).toHaveLength(1);
  });

  it.each(["DELETE FROM", "DROP TABLE"])("succeeds after %s, and forgets the row", async (statement) => {
    const { table, outs } = await createdRow(database);
    await database.query(`${statement} ${table}`);
    await remove(outs);
    await remove(outs);
    expect(await recordsOf(table)).toEqual([]);
  });

  it("deletes a row that was changed by hand, also when its columns have other types by now", async () => {
    const { table, outs } = await createdRow(database);
    await database.query(`ALTER TABLE ${table} ALTER name TYPE integer USING 7, DROP age`);
    await remove(outs);
    expect(await rowsOf(table)).toEqual([]);
  });

  it("leaves a row that was moved away and back to the newer resource", async () => {
    const { table, outs: former } = await createdRow(database);
    const present = await create(rowIn(table)); // the move back, before the former resource's delete was done
    await remove(former);
    expect(await read(present)).toEqual(present);
    expect(await rowsOf(table)).toEqual([ALEX]);
  });

  it("leaves a row that another client has taken since", async () => {
    const { table, outs } = await createdRow(database);
    await database.forgetRecords(table);
    await database.query(`DELETE FROM ${table}`);
    await create(rowIn(table, { owner: OTHER_OWNER }));
    await remove(outs);
    expect(await rowsOf(table)).toEqual([ALEX]);
  });

  it("deletes a row without a record only if it is as it was written", async () => {
    const { table: same, outs } = await createdRow(database);
    const { table: changed, outs: other } = await createdRow(database);
    await database.forgetRecords(same, changed);
    await database.query(`UPDATE ${changed} SET name = 'bob'`);
    for (const row of [outs, other]) await remove(row);
    expect(await rowsOf(same)).toEqual([]);
    expect(await rowsOf(changed)).toEqual([{ ...ALEX, name: "bob" }]);
  });
});

describe("what cannot be written is said in the database's own words", () => {
  const id = "id text PRIMARY KEY";
  const all = `${id}, name text, age integer, country text`;
  const name = "alex";

  it.each<[string, string, RowInputs["values"], unknown]>([
    ["a value of the wrong type", all, { age: "old" }, terminal("WrongType", /type integer: "old"/)],
    ["a number out of range", all, { age: 3e9 }, terminal("ValueOutOfRange", /out of range/)],
    ["a value that is too long", `${id}, name varchar(3)`, { name }, terminal("ValueTooLong", /varying\(3\)/)],
    ["a missing value", `${id}, name text NOT NULL`, { name: null }, terminal("ValueMissing", /null .* "name"/)],
    ["a value that a rule refuses", `${id}, age int CHECK (age > 30)`, { age: 23 }, terminal("ValueRefused", /check/)],
    ["NUL", all, { name: "a\0b" }, terminal("InvalidText", /invalid byte sequence/)],
    ["a missing column", id, { name }, retryable("ColumnMissing", /column "name" of relation "students_\w+" does not/)],
    ["a missing key column", "name text", { name }, retryable("ColumnMissing", /column "id"/)],
    ["a key column that is not unique", "id text, name text", { name }, retryable("KeyNotUnique", /no unique or/)],
  ])("%s", async (_case, columns, values, refusal) => {
    const table = await database.createStudents(columns);
    await expect(create(rowIn(table, { values }))).rejects.toEqual(refusal);
    expect([await rowsOf(table), await recordsOf(table)]).toEqual([[], []]);
  });

  it.each([
    ["missing", /^relation "missing" does not exist$/],
    ["public.missing", /^relation "public\.missing" does not exist$/],
    ["nowhere.students", /^relation "nowhere\.students" does not exist$/],
    ['x"; DROP TABLE y; --', /^relation "x"; DROP TABLE y; --" does not exist$/],
  ])("the missing table %s", async (table, message) => {
    await expect(create(rowIn(table))).rejects.toEqual(retryable("TableMissing", message));
  });

  it("another row with the same unique value", async () => {
    const table = await database.createStudents(`${id}, name text UNIQUE`);
    await create(rowIn(table, { values: { name } }));
    const creating = create(rowIn(table, { key: { id: "2" }, values: { name } }));
    await expect(creating).rejects.toEqual(retryable("UniqueViolation", /Key \(name\)=\(alex\) already exists/));
  });
});

describe("the allow-list", () => {
  it.each(["students_*", "public.*"])("%s lets a table be written by either of its names", async (list) => {
    const table = await database.createStudents();
    database.use({ KINDSTACK_POSTGRES_TABLES: list });
    await create(rowIn(table));
    await create(rowIn(`public.${table}`));
    expect(await rowsOf(table)).toEqual([ALEX]);
  });

  it("refuses in check, create and update what is not on it, but still deletes", async () => {
    const { table, outs } = await createdRow(database);
    database.use({ KINDSTACK_POSTGRES_TABLES: "pupils" });
    const notAllowed = terminal("TableNotAllowed", "KINDSTACK_POSTGRES_TABLES allows pupils");
    await expect(provider.check({}, { ...rowIn(table) })).rejects.toEqual(notAllowed);
    await expect(create(rowIn(table))).rejects.toEqual(notAllowed);
    await expect(update(outs, rowIn(table))).rejects.toEqual(notAllowed);
    await remove(outs);
    expect(await rowsOf(table)).toEqual([]);
  });

  it("checks the table that a name means, not the name", async () => {
    await expect(create(rowIn("pg_class"))).rejects.toEqual(terminal("TableNotAllowed", "pg_catalog.pg_class"));
  });
});

it("a value may be a mebibyte long", async () => {
  const country = "é".repeat(2 ** 19);
  const table = await database.createStudents();
  const outs = await create(rowIn(table, { values: { country } }));
  expect(await database.query(`SELECT octet_length(country) AS bytes FROM ${table}`)).toEqual([{ bytes: 2 ** 20 }]);
  expect(await read(outs)).toEqual(outs);
});

describe("without a database", () => {
  afterEach(() => closePool());

  it("says that the password is wrong, and not which", async () => {
    await closePool();
    database.use({ PSQL_PASSWORD: "not-the-password" });
    const failure = await errorOf(create(rowIn("students")));
    expect(failure).toEqual(retryable("AuthenticationFailed", "password authentication failed for user"));
    expect(JSON.stringify(failure, Object.getOwnPropertyNames(failure))).not.toContain("not-the-password");
  });

  it("continues after the server has ended its connections", async () => {
    const { table } = await createdRow(database);
    const end =
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'kindstack' AND datname = $1";
    const working = withReadTransaction(async (connection) => {
      await connection.query("SELECT 1");
      await database.query(end, [database.name]);
      await connection.query("SELECT 1");
    });
    await expect(working).rejects.toHaveProperty("errorClass", "retryable");
    await create(rowIn(table));
    expect(await rowsOf(table)).toEqual([ALEX]);
  });
});
