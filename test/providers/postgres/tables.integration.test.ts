import fc from "fast-check";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { findDriftedRows } from "../../../providers/postgres/drift";
import { closePool } from "../../../providers/postgres/pool";
import { provider } from "../../../providers/postgres/row";
import type { RowInputs, RowOutputs } from "../../../providers/postgres/row-inputs";
import { inspectRow } from "../../../providers/postgres/row-inspection";
import { anyCharacter } from "../../characters";
import { controlPlane } from "../../control-plane";
import { blocksOf } from "../../e2e/blocks";
import { errorOf, retryable, terminal } from "../failures";
import { RECORDS_RIGHTS, rowIn, TestDatabase, useDatabase } from "./database";
import { create, createdRow, driftOf, read, release, remove, sqlAfter, update } from "./rows";

/* Tables as teams have them: with other types, triggers, rules, policies and grants, and under other names than yesterday. */

const database = useDatabase();
const ID = "default/sample-student";
let writer: string;

beforeAll(async () => {
  await createdRow(database); // makes the records
  writer = await database.createRole("writer", RECORDS_RIGHTS);
});
afterEach(() => database.use());

const rowsOf = (table: string) => database.rowsOf(table);
const recordsOf = (table: string) => database.recordsOf(table);
const isDrifted = async (inputs: RowInputs) => (await driftOf(inputs)) !== undefined;

describe("a column of type", () => {
  beforeAll(() =>
    database.query(`CREATE TYPE mood AS ENUM ('sad', 'o''k; --"', 'happy'); CREATE DOMAIN document AS jsonb;
      CREATE DOMAIN short AS varchar(20) CHECK (value <> 'no'); CREATE TYPE pair AS (a int, b text);
      CREATE DOMAIN moods AS mood[]`),
  );

  const HOSTILE = ["", " ", "now", "'; DROP TABLE x; --", '"\\', "{}", "NULL", "null", "é🇨🇦\u202e\t\n", "%s $1"];
  /** Of a value that a column cannot have. */
  const REFUSALS = /^(WrongType|Value(TooLong|OutOfRange|Refused|Rewritten|NotStable|Missing)|InvalidText)$/;
  const json = (value: unknown) => JSON.stringify(value);
  /** Values that each type takes, and another value that is equal to the first one by the type's own rules. */
  const TYPES: Record<string, { values: string[]; equal?: [string, string] }> = {
    text: { values: HOSTILE },
    "varchar(40)": { values: HOSTILE },
    "char(40)": { values: HOSTILE.filter((text) => text !== ""), equal: ["a", "a  "] },
    name: { values: HOSTILE },
    short: { values: ["yes", "'\"\\"] },
    jsonb: {
      values: [json({ code: "ca" }), json('"'), json(HOSTILE), "null", "1.0"],
      equal: ['{"b":1,"a":2}', '{ "a": 2, "b": 1 }'],
    },
    document: { values: [json({ code: ["ca"] }), json("\\")] },
    json: { values: ['{ "b" : 1,\n"a": 2}', json(HOSTILE)] },
    xml: { values: ["<a>é</a>"] },
    point: { values: ["(1,2)", "(1.5,-2)"], equal: ["(1,2)", "1, 2"] },
    box: { values: ["(2,2),(0,0)"] },
    polygon: { values: ["((0,0),(1,1))"] },
    jsonpath: { values: ["$.a"] },
    "text[]": { values: ["{}", '{a,"b,c",NULL,"NULL"}', '{"\\"\\\\","{}"}'], equal: ["{a,b}", '{ "a" , b }'] },
    "int[]": { values: ["{1,2}", "{{1,2},{3,4}}"] },
    "json[]": { values: ['{"{\\"a\\": 1}"}'] },
    "point[]": { values: ['{"(1,2)"}'] },
    mood: { values: ["sad", "o'k; --\""] },
    "mood[]": { values: ["{sad,happy}"] },
    moods: { values: ["{sad}"] },
    pair: { values: ['(1,"a b")'] },
    bytea: { values: ["\\x00ff", "\\x"], equal: ["\\xFF", "\\xff"] },
    boolean: { values: ["true", "f"], equal: ["t", "yes"] },
    integer: { values: ["0", "-7"], equal: ["7", "+007"] },
    bigint: { values: ["9223372036854775807"] },
    "numeric(5,2)": { values: ["23.00", "-0.01"], equal: ["23", "23.00"] },
    numeric: { values: ["1e3", "NaN", "0.1000"], equal: ["1.0", "1"] },
    real: { values: ["1.1", "NaN", "-0"] },
    "double precision": { values: ["0.1", "1e300", "Infinity"] },
    money: { values: ["12.50"] },
    uuid: { values: ["A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"] },
    inet: { values: ["10.0.0.1/8"] },
    cidr: { values: ["10.0.0.0/8"] },
    macaddr: { values: ["08:00:2b:01:02:03"] },
    "bit(3)": { values: ["101"] },
    "bit varying(5)": { values: ["", "101"] },
    date: { values: ["2024-02-29", "infinity", "epoch"] },
    time: { values: ["04:05:06.789", "24:00"] },
    timestamp: { values: ["2024-02-29 12:00", "-infinity"] },
    timestamptz: {
      values: ["2024-02-29 12:00+02", "2024-06-01 00:00 Europe/Berlin"],
      equal: ["2024-01-01 00:00+00", "2024-01-01 01:00+01"],
    },
    interval: { values: ["1 day 02:00"], equal: ["24:00:00", "1 day"] },
    int4range: { values: ["[1,5)", "empty"], equal: ["[1,4]", "[1,5)"] },
    tstzrange: { values: ["[2024-01-01 00:00+00,)"] },
    int4multirange: { values: ["{[1,3),[5,7)}"] },
    tsvector: { values: ["'a' 'b':2A"] },
    oid: { values: ["7"] },
    regclass: { values: ["pg_class"] },
  };

  it.each(Object.entries(TYPES))("%s is written once, read, compared and deleted", async (type, { values, equal }) => {
    const table = await database.createStudents(`id text PRIMARY KEY, value ${type}`);
    const wanted = (value: string | null) => rowIn(table, { key: { id: `'"; --\\` }, values: { value } });
    let outs: RowOutputs | undefined;
    for (const value of [...values, null, ...(equal ?? [])]) {
      outs = outs === undefined ? await create(wanted(value)) : await update(outs, wanted(value));
      expect(await isDrifted(wanted(value)), String(value)).toBe(false);
      expect((await read(outs))?.values, String(value)).toEqual({ value });
    }
    if (outs === undefined) throw new Error("no value");
    const former = values[0] as string;
    for (const value of equal ?? []) expect(await isDrifted(wanted(value)), value).toBe(false);
    if (equal === undefined) expect(await isDrifted(wanted(former))).toBe(true);
    await database.query(`UPDATE ${table} SET value = NULL`);
    expect(await isDrifted(wanted(former))).toBe(true);
    await database.forgetRecords(table);
    await update(outs, wanted(former));
    await database.forgetRecords(table);
    await remove({ ...outs, values: { value: former } });
    expect(await rowsOf(table)).toEqual([]);
  });

  /** What each type, its arrays and ranges, and a domain of it get: SQL, JSON, arrays, ranges and numbers, hardly one in a form of its own. */
  const ANY = [
    ...HOSTILE.slice(1),
    ...["0", "-1", "1e400", "9007199254740993", "t", "now", "tomorrow", "2024-02-30", "infinity", "\\xzz", "1 mon"],
    ...["{1,2}", '{"a": 1, "a": 2}', "{{1},{2,3}}", "[1,2)", "(1,2)", "empty", "$.a", "<a/>", "a & b", "10.0.0.1"],
    "x".repeat(300),
  ];

  it("that the server has takes a value as it is, or refuses it with a reason and writes nothing", async () => {
    const types = await database.query<{ type: string }>(
      `SELECT format_type(oid, NULL) AS type FROM pg_type
       WHERE typtype IN ('b', 'd', 'e', 'r', 'm') AND typname !~ '^_?(pg_|reg|cstring|gtsvector)' AND typcategory <> 'Z'
         AND typnamespace IN ('pg_catalog'::regnamespace, 'public'::regnamespace) ORDER BY oid`,
    );
    expect(types.length).toBeGreaterThan(90);
    // Any value for any type would be thousands; a seed picks some for each, all of them over time.
    const picked = fc.sample(fc.shuffledSubarray(ANY, { minLength: 3, maxLength: 3 }), {
      seed: 11,
      numRuns: types.length,
    });
    let accepted = 0;
    const odd: string[] = [];
    for (const [index, { type }] of types.entries()) {
      const table = await database.createStudents(`id text PRIMARY KEY, value ${type}`);
      const values = picked[index] ?? [];
      const inputs = values.map((value, row) => {
        const uid = `${table}-${row}`;
        return rowIn(table, { key: { id: String(row) }, values: { value }, owner: { uid, description: uid } });
      });
      const outcomes = await Promise.allSettled(inputs.map(create));
      const written = inputs.filter((_, row) => outcomes[row]?.status === "fulfilled");
      accepted += written.length;
      const what = `${type}: ${JSON.stringify(values)}`;
      const reasons = outcomes.map((outcome) => (outcome.status === "fulfilled" ? "" : outcome.reason.reason));
      odd.push(
        ...reasons.filter((reason) => reason !== "" && !REFUSALS.test(reason)).map((reason) => `${reason}: ${what}`),
      );
      expect((await rowsOf(table)).map(({ id }) => id).sort(), what).toEqual(written.map(({ key }) => key.id));
      expect(await recordsOf(table), what).toHaveLength(written.length);
      const { drifted, unknown } = await findDriftedRows(written.map((row) => ({ ...row, uid: row.owner.uid })));
      expect([...drifted, ...unknown], what).toEqual([]);
    }
    expect(odd).toEqual([]);
    expect(accepted).toBeGreaterThan(30); // most values are none of most types
  });

  it("text, jsonb, text[] or bytea takes whatever text there is", async () => {
    const table = await database.createStudents("id text PRIMARY KEY, t text, j jsonb, a text[], b bytea");
    const text = fc.string({ unit: anyCharacter, maxLength: 30 }).filter((value) => !value.includes("\0"));
    let outs = await create(rowIn(table, { values: { t: "", j: "{}", a: "{}", b: "" } }));
    await fc.assert(
      fc.asyncProperty(text, async (value) => {
        const quoted = `{"${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"}`;
        const values = {
          t: value,
          j: json({ [value]: value }),
          a: quoted,
          b: `\\x${Buffer.from(value).toString("hex")}`,
        };
        outs = await update(outs, rowIn(table, { values }));
        expect(await isDrifted(rowIn(table, { values }))).toBe(false);
        const [row] = await database.query<{ t: string; j: object; a: string[]; b: Buffer }>(
          `SELECT t, j, a, b FROM ${table}`,
        );
        expect(row).toEqual({ t: value, j: { [value]: value }, a: [value], b: Buffer.from(value) });
      }),
      { numRuns: 60, seed: 7 },
    );
  });

  const rewritten = (message: string | RegExp) => retryable("ValueRewritten", message);
  const notStable = terminal("ValueNotStable", /^column "value": as .* is another value each time/);
  it.each([
    ["timestamptz", "now", notStable],
    ["date", "tomorrow", notStable],
    ["timestamp", "Yesterday allballs", notStable],
    ["date[]", "{today}", notStable],
    ["daterange", "[today,)", notStable],
    ["numeric(5,2)", "1.005", rewritten(/\(numeric\(5,2\)\): the database makes "1\.0[01]" of "1\.005"/)],
    ["timestamptz(0)", "2024-01-01 00:00:00.7+00", rewritten(/\(timestamp\(0\) with time zone\)/)],
  ])("%s does not take %s, and nothing is written", async (type, value, refusal) => {
    const table = await database.createStudents(`id text PRIMARY KEY, value ${type}`);
    await expect(create(rowIn(table, { values: { value } }))).rejects.toEqual(refusal);
    expect([await rowsOf(table), await recordsOf(table)]).toEqual([[], []]);
  });
});

describe("a row that the database changes as it is written", () => {
  it("is not written; the error names column, value and trigger", async () => {
    const { table, outs } = await createdRow(database);
    const normalise = `CREATE TRIGGER normalise BEFORE INSERT OR UPDATE ON ${table}`;
    await database.createTrigger(normalise, "NEW.country := upper(trim(NEW.country)); RETURN NEW;");
    const refusal = retryable(
      "ValueRewritten",
      /: column "country" \(text\): the database makes "CANADA" of "canada"; nothing was written\. .* \(trigger normalise\)$/,
    );
    await expect(update(outs, rowIn(table, { values: { ...outs.values, age: 24 } }))).rejects.toEqual(refusal);
    await expect(create(rowIn(table, { key: { id: "new" } }))).rejects.toEqual(refusal);
    expect(await rowsOf(table)).toEqual([{ id: ID, name: "alex", age: 23, country: "canada" }]);
    const wanted = rowIn(table, { values: { ...outs.values, country: "CANADA" } });
    await update(outs, wanted);
    expect(await isDrifted(wanted)).toBe(false);
  });

  it("is not written either where the trigger is deferred to the end of the transaction", async () => {
    const table = await database.createStudents();
    const late = `CREATE CONSTRAINT TRIGGER late AFTER INSERT OR UPDATE ON ${table} DEFERRABLE INITIALLY DEFERRED`;
    const body = `UPDATE ${table} SET country = upper(country) WHERE id = NEW.id AND country <> upper(country)`;
    await database.createTrigger(late, `${body}; RETURN NULL;`);
    await expect(create(rowIn(table))).rejects.toEqual(retryable("ValueRewritten", '"CANADA" of "canada"'));
    expect(await rowsOf(table)).toEqual([]);
  });

  it("is given up after the time of a statement where a deferred trigger does not end", async () => {
    const table = await database.createStudents();
    const slow = `CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON ${table} DEFERRABLE INITIALLY DEFERRED`;
    await database.createTrigger(slow, "PERFORM pg_sleep(600); RETURN NULL;");
    await expect(create(rowIn(table))).rejects.toEqual(retryable("StatementTimeout", "statement timeout"));
    const running = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND query = 'COMMIT'";
    expect(await database.query(`${running} AND state = 'active'`)).toEqual([]);
  });

  it.each(["country text GENERATED ALWAYS AS ('x') STORED", "country int GENERATED ALWAYS AS IDENTITY"])(
    "by %s is refused for good",
    async (column) => {
      const table = await database.createStudents(`id text PRIMARY KEY, name text, age integer, ${column}`);
      const values = { name: "alex", age: 23, country: "1" };
      await expect(create(rowIn(table, { values }))).rejects.toEqual(terminal("ColumnGenerated", /country/));
    },
  );
});

describe("a write that the database suppresses", () => {
  type Hook = (table: string) => Promise<unknown>;
  const hook = (event: string, body: string) => (table: string) =>
    database.createTrigger(`CREATE TRIGGER hook BEFORE ${event} ON ${table}`, body.replaceAll("%", table));
  const rule = (event: string) => (table: string) =>
    database.query(`CREATE RULE nothing AS ON ${event} TO ${table} DO INSTEAD NOTHING`);
  const suppressed = (what: string, hooks: string) =>
    retryable("WriteSuppressed", `^the database did not ${what} row .*; the table has: .*${hooks}`);

  it.each<[string, string, Hook]>([
    ["a trigger", "trigger hook", hook("INSERT", "RETURN NULL;")],
    ["a rule", "rule nothing", rule("INSERT")],
    ["a redirection", "trigger hook", hook("INSERT", "INSERT INTO %_new VALUES (NEW.*); RETURN NULL;")],
  ])("is told from a conflict, with what suppressed it: %s", async (_, hooks, prepare) => {
    const table = await database.createStudents();
    await database.query(`CREATE TABLE ${table}_new () INHERITS (${table})`);
    await prepare(table);
    await expect(create(rowIn(table))).rejects.toEqual(suppressed("insert", hooks));
    expect([await rowsOf(table), await recordsOf(table)]).toEqual([[], []]);
  });

  it("is told of an update of a row of ours", async () => {
    const { table, outs } = await createdRow(database);
    await hook("UPDATE", "RETURN NULL;")(table);
    const updating = update(outs, rowIn(table, { values: { age: 1 } }));
    await expect(updating).rejects.toEqual(suppressed("update", "trigger hook"));
  });

  it("a row of a table that has no record yet is adopted with the SQL of the conflict, hostile names included", async () => {
    const table = `"it's"."a ""b"`;
    await database.query(`CREATE SCHEMA "it's"; CREATE TABLE ${table} (id text PRIMARY KEY, age int)`);
    await database.query(`INSERT INTO ${table} VALUES ('o''k', 1)`);
    const owner = { uid: "u'1", description: "d'1" };
    const inputs = rowIn(`it's.a "b`, { key: { id: "o'k" }, values: { age: 2 }, owner });
    const conflict = await errorOf(create(inputs));
    expect((await inspectRow(inputs, { owners: [] })).refusal?.message).toBe(conflict.message);
    await database.query(sqlAfter("overwrites it: ", conflict));
    const adopted = await create(inputs);
    expect(await rowsOf(table)).toEqual([{ id: "o'k", age: 2 }]);
    await release(adopted);
    expect(await rowsOf(table)).toHaveLength(1);
  });

  it("a row that is there and has no record is a conflict all the same", async () => {
    const table = await database.createStudents();
    await database.query(`INSERT INTO ${table} (id) VALUES ('${ID}')`);
    await hook("DELETE", "RETURN NULL;")(table);
    await expect(create(rowIn(table))).rejects.toEqual(retryable("RowConflict", "belongs to no object"));
  });

  it.each<[string, string, Hook]>([
    ["a trigger", "trigger hook", hook("DELETE", "UPDATE % SET country = '' WHERE id = OLD.id; RETURN NULL;")],
    ["a rule", "rule nothing", rule("DELETE")],
  ])("a deletion by %s is a failure, and the record stays", async (_, hooks, prepare) => {
    const { table, outs } = await createdRow(database);
    await prepare(table);
    await expect(remove(outs)).rejects.toEqual(suppressed("delete", hooks));
    expect(await recordsOf(table)).toMatchObject([{ key: ID }]);
    expect(await rowsOf(table)).toMatchObject([{ id: ID, country: "canada" }]);
    await create(rowIn(table)); // it is ours still
    await release(outs);
  });
});

describe("row security", () => {
  /** A table that the role may use as this policy says, and as no other does. */
  async function secured(policy: string): Promise<string> {
    const table = await database.createStudents();
    await database.query(`ALTER TABLE ${table} ENABLE ROW LEVEL SECURITY; GRANT ALL ON ${table} TO ${writer};
      CREATE POLICY p ON ${table} ${policy}`);
    await database.useAs(writer);
    return table;
  }

  it("with a policy for all that Kindstack does needs nothing else", async () => {
    const table = await secured(`TO ${writer} USING (true)`);
    const outs = await create(rowIn(table));
    expect(await isDrifted(rowIn(table))).toBe(false);
    await database.query(`DELETE FROM ${table}`);
    await remove(outs); // seen to be gone
    expect(await recordsOf(table)).toEqual([]);
  });

  it("that hides rows from reading is named where the database names none", async () => {
    const table = await secured(`FOR INSERT TO ${writer} WITH CHECK (true)`);
    const hint = /give it a policy with USING \(true\) for SELECT as well$/;
    await expect(create(rowIn(table))).rejects.toEqual(retryable("PermissionDenied", hint));
  });

  it.each([
    ["that hides the row makes a deletion fail", "DELETE", "SELECT", retryable("RowHidden", "row security hides it")],
    ["that keeps the row does so, too", "SELECT", "DELETE", retryable("WriteSuppressed", "row security")],
  ])("%s, with the record kept, until the role has a policy", async (_, allowed, missing, refusal) => {
    const table = await secured("USING (true)");
    const outs = await create(rowIn(table));
    await database.query(`DROP POLICY p ON ${table}; CREATE POLICY "some" ON ${table} FOR ${allowed} USING (true)`);
    await expect(remove(outs)).rejects.toEqual(refusal);
    expect(await recordsOf(table)).toMatchObject([{ key: ID }]);
    expect(await rowsOf(table)).toHaveLength(1);
    await database.query(`CREATE POLICY "other" ON ${table} FOR ${missing} TO ${writer} USING (true)`);
    await remove(outs);
    expect(await rowsOf(table)).toEqual([]);
  });
});

describe("the page postgresql.md", () => {
  const sql = blocksOf("docs/postgresql.md").filter(({ language }) => language === "sql");
  const sqlOf = (heading: string) => {
    const found = sql.filter((block) => block.heading === heading);
    expect(found).toHaveLength(1);
    return found[0]?.text ?? "";
  };

  it("names rights, as they are written, that are enough to write, compare, move and delete rows, and to leave", async () => {
    const page = new TestDatabase(controlPlane().env);
    await page.open();
    try {
      await page.query("CREATE SCHEMA app");
      const columns = "id text PRIMARY KEY, name text, age int, country text, salary int DEFAULT 7";
      for (const table of ["students", "pupils"]) await page.query(`CREATE TABLE app.${table} (${columns})`);
      const rights = sqlOf("Rights");
      await page.query(rights);
      await page.query(rights.slice(rights.indexOf("GRANT SELECT")).replace("app.students", "app.pupils"));
      await page.query(sqlOf("Row security"));
      await closePool();
      page.use({ PSQL_USER: "kindstack", PSQL_PASSWORD: "secret", KINDSTACK_POSTGRES_TABLES: "app.*" });

      const inputs = rowIn("app.students");
      const outs = await create(inputs);
      await page.query("UPDATE app.students SET age = 1");
      expect(await isDrifted(inputs)).toBe(true);
      expect((await read(outs))?.values).toEqual({ ...inputs.values, age: "1" });
      const repaired = await update(outs, inputs);
      expect(await isDrifted(inputs)).toBe(false);
      const moved = await create(rowIn("app.pupils"));
      await remove(repaired);
      expect(await page.query("SELECT id FROM app.students")).toEqual([]);

      await page.query("INSERT INTO app.students (id, name) VALUES ('team-a/alex', 'theirs')");
      const owner = { uid: "UID of the object", description: "" };
      const adopting = rowIn("app.students", { key: { id: "team-a/alex" }, owner });
      const conflict = await errorOf(create(adopting));
      expect(conflict).toEqual(retryable("RowConflict", "belongs to no object"));
      await page.query(sqlAfter("overwrites it: ", conflict));
      const adopted = await create(adopting);
      expect(await page.query("SELECT name, salary FROM app.students")).toEqual([{ name: "alex", salary: 7 }]);

      const former = "cluster = 'UID of the former cluster', cluster_uid = 'former'";
      await page.query(`UPDATE kindstack_ownership.records SET ${former}`);
      await page.query(sqlOf("Several clusters, and a rebuilt one"));
      const cluster = { name: "production", uid: "new" };
      await create({ ...adopting, owner: { ...owner, uid: "uid-new", cluster } });
      for (const row of [adopted, moved]) await release(row);

      await closePool();
      await page.query(sqlOf("Leave"));
      expect(await page.query("SELECT id FROM app.students")).toEqual([{ id: "team-a/alex" }]);
    } finally {
      await page.query("DROP OWNED BY kindstack; DROP ROLE kindstack").catch(() => undefined);
      await page.close();
      database.use();
    }
  });

  it("has no other SQL", () => {
    expect(sql.map(({ heading }) => heading)).toEqual([
      ...["Rights", "Row security", "Several clusters, and a rebuilt one", "Leave"],
    ]);
  });
});

describe("a table under another name", () => {
  const aside = (table: string) => `${table}_aside`;
  const renamed = (table: string) => `ALTER TABLE ${table} RENAME TO ${aside(table)}`;
  const empty = (table: string) => `CREATE TABLE ${table} (LIKE ${aside(table)} INCLUDING ALL)`;
  const sameName = (table: string) => table;

  it.each<[string, (table: string) => string, (table: string) => string]>([
    ["renamed", renamed, aside],
    [
      "moved to another schema",
      (table) => `CREATE SCHEMA s${table}; ALTER TABLE ${table} SET SCHEMA s${table}`,
      (table) => `s${table}.${table}`,
    ],
    ["made a view", (table) => `${renamed(table)}; CREATE VIEW ${table} AS TABLE ${aside(table)}`, sameName],
    [
      "made a partition",
      (table) =>
        `${renamed(table)}; ${empty(table)} PARTITION BY HASH (id);
         ALTER TABLE ${table} ATTACH PARTITION ${aside(table)} FOR VALUES WITH (MODULUS 1, REMAINDER 0)`,
      sameName,
    ],
  ])("%s: nothing changes, and the next name finds the row", async (_, statements, nextName) => {
    const { table, outs } = await createdRow(database);
    await database.query(statements(table));
    const next = nextName(table);

    // As it was, until somebody names it as it is.
    const kept = await update(outs, rowIn(table, { values: { ...outs.values, age: 24 } }));
    expect(await isDrifted(rowIn(table, { values: kept.values }))).toBe(false);
    expect(await read(kept)).toMatchObject({ values: { age: 24 }, owner: outs.owner });

    const wanted = rowIn(next, { values: { ...outs.values, age: 25 } });
    expect(await provider.diff("id", kept, wanted)).toMatchObject({ changes: true, replaces: [] });
    expect((await inspectRow(wanted, { owners: [wanted.owner.uid] })).refusal).toBeUndefined();
    const moved = await update(kept, wanted);
    expect(await rowsOf(next)).toMatchObject([{ id: ID, age: 25 }]);
    await remove(moved);
    expect(await rowsOf(next)).toEqual([]);
  });

  it("is found at deletion, also where nobody has named it", async () => {
    const { table, outs } = await createdRow(database);
    await database.query(renamed(table));
    await remove(outs);
    expect(await rowsOf(aside(table))).toEqual([]);
  });

  it("whose name another table has by now is told, with both ways out", async () => {
    const { table, outs } = await createdRow(database);
    await database.query(`${renamed(table)}; ${empty(table)}; INSERT INTO ${table} SELECT * FROM ${aside(table)}`);
    const both = `now called public.${aside(table)}; public.${table} is another table`;
    const failed = await errorOf(update(outs, rowIn(table)));
    expect(failed).toEqual(retryable("TableReplaced", both));
    await expect(remove(outs)).rejects.toEqual(retryable("TableReplaced", both)); // a copy would stay
    expect([await rowsOf(table), await rowsOf(aside(table))].map(({ length }) => length)).toEqual([1, 1]);

    await database.query(sqlAfter("run: ", failed));
    const wanted = rowIn(table, { values: { ...outs.values, age: 25 } });
    const present = await update(outs, wanted);
    expect(await rowsOf(table)).toMatchObject([{ age: 25 }]);
    await remove(present);
    expect([await rowsOf(table), await rowsOf(aside(table))].map(({ length }) => length)).toEqual([0, 1]);
  });

  it("that was dropped and made again, empty or with its rows, is the one that the records mean", async () => {
    const { table, outs } = await createdRow(database);
    const again = (rows: string) =>
      database.query(`${renamed(table)}; ${empty(table)}; ${rows}; DROP TABLE ${aside(table)}`);
    await again("");
    expect(await driftOf(rowIn(table))).toBe(
      `table public.${table} was dropped and made again, row "${ID}" was missing`,
    );
    await update(outs, rowIn(table));
    expect(await driftOf(rowIn(table))).toBeUndefined();
    await again(`INSERT INTO ${table} SELECT * FROM ${aside(table)}`);
    await create(rowIn(table, { values: { age: 30 } })); // no conflict with itself
    expect(await rowsOf(table)).toMatchObject([{ id: ID, age: 30 }]);
    expect(await recordsOf(table)).toMatchObject([{ key: ID }]);
  });

  it("of a database that was restored from a dump is known by its name", async () => {
    const { table, outs } = await createdRow(database);
    // As another server has it: the records are the dump's, and the OID there means nothing, or another table.
    const restored = "server = 'the former one', oid = 'pg_class'::regclass";
    const restore = () =>
      database.query(`UPDATE kindstack_ownership.tables SET ${restored} WHERE table_name = $1`, [table]);
    await restore();
    expect(await isDrifted(rowIn(table))).toBe(false);
    const present = await update(outs, rowIn(table, { values: { ...outs.values, age: 30 } }));
    expect(await recordsOf(table)).toMatchObject([{ key: ID }]);
    await restore();
    await remove(present);
    expect(await rowsOf(table)).toEqual([]);
  });

  it("restored without its records is recorded again by the repair", async () => {
    const { table, outs } = await createdRow(database);
    await database.forgetRecords(table);
    expect(await driftOf(rowIn(table))).toBe("the row's owner was not recorded");
    const refreshed = (await read(outs)) as RowOutputs;
    expect(await provider.diff("id", refreshed, rowIn(table))).toMatchObject({ changes: true, replaces: [] });
    await update(refreshed, rowIn(table));
    expect(await recordsOf(table)).toMatchObject([{ key: ID }]);
    expect(await isDrifted(rowIn(table))).toBe(false);
  });
});
