import fc from "fast-check";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { findDriftedRows } from "../../../providers/postgres/drift";
import { closePool } from "../../../providers/postgres/pool";
import { provider } from "../../../providers/postgres/row";
import type { RowInputs, RowOutputs } from "../../../providers/postgres/row-inputs";
import { inspectRow } from "../../../providers/postgres/row-inspection";
import { anyCharacter } from "../../characters";
import { controlPlane } from "../../control-plane";
import { blocksOf } from "../../e2e/blocks";
import { RECORDS, rowIn, TestDatabase, useDatabase } from "./database";

/* Tables as teams have them: with other types, triggers, rules, policies and grants, and under other names than yesterday. */

const database = useDatabase();
const [writer, other] = [`${database.name}_writer`, `${database.name}_other`];
const ID = "default/sample-student";

beforeAll(async () => {
  await provider.create(rowIn(await database.createStudents())); // makes the records
  for (const role of [writer, other]) {
    await database.query(`CREATE ROLE ${role} LOGIN PASSWORD 'x'; GRANT USAGE ON SCHEMA kindstack_ownership TO ${role};
      GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA kindstack_ownership TO ${role}`);
  }
});
afterAll(async () => {
  await closePool();
  await database.query(`DROP OWNED BY ${writer}, ${other}; DROP ROLE ${writer}, ${other}`);
});
afterEach(() => database.use());

const create = async (inputs: RowInputs): Promise<RowOutputs> => (await provider.create(inputs)).outs;
const update = async (olds: RowOutputs, news: RowInputs) => (await provider.update("id", olds, news)).outs;
const read = async (outs: RowOutputs) => (await provider.read("id", outs)).props;
const rowsOf = (table: string) => database.query(`SELECT * FROM ${table}`);
const recordsOf = (table: string) => database.query(`SELECT key FROM ${RECORDS} WHERE table_name = $1`, [table]);
const driftOf = async (inputs: RowInputs) => {
  const { drifted, unknown } = await findDriftedRows([{ ...inputs, uid: inputs.owner.uid }]);
  expect([...unknown]).toEqual([]);
  return drifted.get(inputs.owner.uid);
};
const isDrifted = async (inputs: RowInputs) => (await driftOf(inputs)) !== undefined;
const refused = (reason: string, errorClass: string, message: string | RegExp) =>
  expect.objectContaining({ reason, errorClass, message: expect.stringMatching(message) });

/** A function for triggers. */
async function triggerFunction(body: string): Promise<string> {
  const name = `f_${Math.random().toString(36).slice(2)}`;
  await database.query(`CREATE FUNCTION ${name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${body} END $$`);
  return name;
}

describe("a column of type", () => {
  beforeAll(() =>
    database.query(`CREATE TYPE mood AS ENUM ('sad', 'o''k; --"', 'happy'); CREATE DOMAIN document AS jsonb;
      CREATE DOMAIN short AS varchar(20) CHECK (value <> 'no'); CREATE TYPE pair AS (a int, b text);
      CREATE DOMAIN moods AS mood[]`),
  );

  const HOSTILE = ["", " ", "'; DROP TABLE x; --", '"\\', "{}", "NULL", "null", "é🇨🇦\u202e\t\n", "%s $1"];
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
    const wanted = (value: string | null) => rowIn(table, { values: { value } });
    let outs: RowOutputs | undefined;
    for (const value of [...values, null, ...(equal ?? [])]) {
      outs = outs === undefined ? await create(wanted(value)) : await update(outs, wanted(value));
      expect(await isDrifted(wanted(value)), String(value)).toBe(false);
      expect((await read(outs))?.values, String(value)).toEqual({ value });
    }
    if (outs === undefined) throw new Error("no value");
    for (const value of equal ?? []) expect(await isDrifted(wanted(value)), value).toBe(false);
    if (equal === undefined) expect(await isDrifted(wanted(values[0] as string))).toBe(true);
    await database.query(`UPDATE ${table} SET value = NULL`);
    expect(await isDrifted(wanted(values[0] as string))).toBe(true);
    await database.forgetRecords(table);
    await update(outs, wanted(values[0] as string));
    await database.forgetRecords(table);
    await provider.delete("id", { ...outs, values: { value: values[0] as string } });
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

  it.each([
    ["timestamptz", "now"],
    ["date", "tomorrow"],
    ["timestamp", "Yesterday allballs"],
    ["date[]", "{today}"],
    ["daterange", "[today,)"],
  ])("%s does not take %s, which is another value each time", async (type, value) => {
    const table = await database.createStudents(`id text PRIMARY KEY, value ${type}`);
    const refusal = refused("ValueNotStable", "terminal", /^column "value": as .* is another value each time/);
    await expect(create(rowIn(table, { values: { value } }))).rejects.toEqual(refusal);
    expect(await rowsOf(table)).toEqual([]);
    expect(await recordsOf(table)).toEqual([]);
  });

  it("text takes the word now", async () => {
    const table = await database.createStudents("id text PRIMARY KEY, value text");
    await create(rowIn(table, { values: { value: "now" } }));
    expect(await rowsOf(table)).toMatchObject([{ value: "now" }]);
  });
});

describe("a row that the database changes as it is written", () => {
  it("is not written; the error names column, value and trigger", async () => {
    const table = await database.createStudents();
    const name = await triggerFunction("NEW.country := upper(trim(NEW.country)); RETURN NEW;");
    const outs = await create(rowIn(table));
    await database.query(
      `CREATE TRIGGER normalise BEFORE INSERT OR UPDATE ON ${table} FOR EACH ROW EXECUTE FUNCTION ${name}()`,
    );
    const refusal = refused(
      "ValueRewritten",
      "retryable",
      /: column "country" \(text\): the database makes "CANADA" of "canada"; nothing was written\. .* \(trigger normalise\)$/,
    );
    await expect(update(outs, rowIn(table, { values: { ...outs.values, age: 24 } }))).rejects.toEqual(refusal);
    await expect(create(rowIn(table, { key: { id: "new" } }))).rejects.toEqual(refusal);
    expect(await rowsOf(table)).toEqual([{ id: ID, name: "alex", age: 23, country: "canada" }]);
    await update(outs, rowIn(table, { values: { ...outs.values, country: "CANADA" } }));
    expect(await isDrifted(rowIn(table, { values: { ...outs.values, country: "CANADA" } }))).toBe(false);
  });

  it("is not written either where the trigger is deferred to the end of the transaction", async () => {
    const table = await database.createStudents();
    const name = await triggerFunction(`UPDATE ${table} SET country = upper(country) WHERE id = NEW.id
      AND country <> upper(country); RETURN NULL;`);
    await database.query(`CREATE CONSTRAINT TRIGGER late AFTER INSERT OR UPDATE ON ${table} DEFERRABLE INITIALLY DEFERRED
      FOR EACH ROW EXECUTE FUNCTION ${name}()`);
    await expect(create(rowIn(table))).rejects.toEqual(refused("ValueRewritten", "retryable", '"CANADA" of "canada"'));
    expect(await rowsOf(table)).toEqual([]);
  });

  it("is given up after the time of a statement where a deferred trigger does not end", async () => {
    const table = await database.createStudents();
    const name = await triggerFunction("PERFORM pg_sleep(600); RETURN NULL;");
    await database.query(`CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON ${table} DEFERRABLE INITIALLY DEFERRED
      FOR EACH ROW EXECUTE FUNCTION ${name}()`);
    await expect(create(rowIn(table))).rejects.toEqual(refused("StatementTimeout", "retryable", "statement timeout"));
    const running =
      "SELECT FROM pg_stat_activity WHERE datname = current_database() AND state = 'active' AND query = 'COMMIT'";
    expect(await database.query(running)).toEqual([]);
  });

  it.each([
    ["rounds", "value numeric(5,2)", "1.005", /\(numeric\(5,2\)\): the database makes "1\.0[01]" of "1\.005"/],
    [
      "has a time without fractions",
      "value timestamptz(0)",
      "2024-01-01 00:00:00.7+00",
      /\(timestamp\(0\) with time zone\)/,
    ],
  ])("by a type that %s is not written either", async (_, column, value, message) => {
    const table = await database.createStudents(`id text PRIMARY KEY, ${column}`);
    await expect(create(rowIn(table, { values: { value } }))).rejects.toEqual(
      refused("ValueRewritten", "retryable", message),
    );
    expect(await rowsOf(table)).toEqual([]);
  });

  it.each([["country text GENERATED ALWAYS AS ('x') STORED"], ["country int GENERATED ALWAYS AS IDENTITY"]])(
    "by %s is refused for good",
    async (column) => {
      const table = await database.createStudents(`id text PRIMARY KEY, name text, age integer, ${column}`);
      const values = { name: "alex", age: 23, country: "1" };
      await expect(create(rowIn(table, { values }))).rejects.toEqual(refused("ColumnGenerated", "terminal", /country/));
    },
  );
});

describe("a write that the database suppresses", () => {
  const hookBefore = async (event: string, body: string, table: string) =>
    database.query(
      `CREATE TRIGGER hook BEFORE ${event} ON ${table} FOR EACH ROW EXECUTE FUNCTION ${await triggerFunction(body)}()`,
    );
  const suppressed = (what: string, hooks: string) =>
    refused("WriteSuppressed", "retryable", `^the database did not ${what} row .*; the table has: .*${hooks}`);

  it("is told from a conflict, with what suppressed it: a trigger", async () => {
    const table = await database.createStudents();
    await hookBefore("INSERT", "RETURN NULL;", table);
    await expect(create(rowIn(table))).rejects.toEqual(suppressed("insert", "trigger hook"));
    expect(await recordsOf(table)).toEqual([]);
  });

  it("a rule", async () => {
    const table = await database.createStudents();
    await database.query(`CREATE RULE nothing AS ON INSERT TO ${table} DO INSTEAD NOTHING`);
    await expect(create(rowIn(table))).rejects.toEqual(suppressed("insert", "rule nothing"));
  });

  it("a redirection to a table that inherits", async () => {
    const table = await database.createStudents();
    await database.query(`CREATE TABLE ${table}_new () INHERITS (${table})`);
    await hookBefore("INSERT", `INSERT INTO ${table}_new VALUES (NEW.*); RETURN NULL;`, table);
    await expect(create(rowIn(table))).rejects.toEqual(suppressed("insert", "trigger hook"));
    expect(await rowsOf(table)).toEqual([]);
  });

  it("an update of a row of ours", async () => {
    const table = await database.createStudents();
    const outs = await create(rowIn(table));
    await hookBefore("UPDATE", "RETURN NULL;", table);
    await expect(update(outs, rowIn(table, { values: { age: 1 } }))).rejects.toEqual(
      suppressed("update", "trigger hook"),
    );
  });

  it("a row of a table that has no record yet is adopted with the SQL of the conflict, hostile names included", async () => {
    const table = `"it's"."a ""b"`;
    await database.query(`CREATE SCHEMA "it's"; CREATE TABLE ${table} (id text PRIMARY KEY, age int)`);
    await database.query(`INSERT INTO ${table} VALUES ('o''k', 1)`);
    const inputs = rowIn(`it's.a "b`, {
      key: { id: "o'k" },
      values: { age: 2 },
      owner: { uid: "u'1", description: "d'1" },
    });
    const conflict = await create(inputs).catch((error: unknown) => error as Error);
    expect((await inspectRow(inputs, { owners: [] })).refusal?.message).toBe((conflict as Error).message);
    await database.query((conflict as Error).message.split("overwrites it: ")[1] as string);
    const adopted = await create(inputs);
    expect(await rowsOf(table)).toEqual([{ id: "o'k", age: 2 }]);
    await provider.release("id", adopted);
    expect(await rowsOf(table)).toHaveLength(1);
  });

  it("a row that is there and has no record is a conflict all the same", async () => {
    const table = await database.createStudents();
    await database.query(`INSERT INTO ${table} (id) VALUES ('${ID}')`);
    await hookBefore("DELETE", "RETURN NULL;", table);
    await expect(create(rowIn(table))).rejects.toEqual(refused("RowConflict", "retryable", "belongs to no object"));
  });

  it.each([
    [
      "a trigger",
      (table: string) =>
        hookBefore("DELETE", `UPDATE ${table} SET country = 'deleted' WHERE id = OLD.id; RETURN NULL;`, table),
      "trigger hook",
    ],
    [
      "a rule",
      (table: string) => database.query(`CREATE RULE kept AS ON DELETE TO ${table} DO INSTEAD NOTHING`),
      "rule kept",
    ],
  ])("a deletion by %s is a failure, and the record stays", async (_, prepare, hook) => {
    const table = await database.createStudents();
    const outs = await create(rowIn(table));
    await prepare(table);
    await expect(provider.delete("id", outs)).rejects.toEqual(suppressed("delete", hook));
    expect(await recordsOf(table)).toEqual([{ key: ID }]);
    expect(await rowsOf(table)).toMatchObject([{ id: ID, country: "canada" }]);
    await create(rowIn(table)); // it is ours still
    await provider.release("id", outs);
  });
});

describe("row security", () => {
  const as = async (role: string) => {
    await closePool();
    database.use({ PSQL_USER: role, PSQL_PASSWORD: "x" });
  };
  const secured = async (...policies: string[]) => {
    const table = await database.createStudents();
    await database.query(`ALTER TABLE ${table} ENABLE ROW LEVEL SECURITY; GRANT ALL ON ${table} TO ${writer}`);
    for (const [index, policy] of policies.entries())
      await database.query(`CREATE POLICY p${index} ON ${table} ${policy}`);
    return table;
  };

  it("with a policy for all that Kindstack does needs nothing else", async () => {
    const table = await secured(`TO ${writer} USING (true)`);
    await as(writer);
    const outs = await create(rowIn(table));
    expect(await isDrifted(rowIn(table))).toBe(false);
    await database.query(`DELETE FROM ${table}`);
    await provider.delete("id", outs); // seen to be gone
    expect(await recordsOf(table)).toEqual([]);
  });

  it("that hides rows from reading is named where the database names none", async () => {
    const table = await secured(`FOR INSERT TO ${writer} WITH CHECK (true)`);
    await as(writer);
    await expect(create(rowIn(table))).rejects.toEqual(
      refused("PermissionDenied", "retryable", /give it a policy with USING \(true\) for SELECT as well$/),
    );
  });

  it("that hides the row makes a deletion fail, with the record kept", async () => {
    const table = await secured(`TO ${writer} USING (true)`);
    await as(writer);
    const outs = await create(rowIn(table));
    await database.query(`DROP POLICY p0 ON ${table}; CREATE POLICY d ON ${table} FOR DELETE USING (true)`);
    await expect(provider.delete("id", outs)).rejects.toEqual(
      refused("RowHidden", "retryable", "row security hides it"),
    );
    expect(await recordsOf(table)).toEqual([{ key: ID }]);
    expect(await rowsOf(table)).toHaveLength(1);
    await database.query(`CREATE POLICY s ON ${table} FOR SELECT TO ${writer} USING (true)`);
    await provider.delete("id", outs);
    expect(await rowsOf(table)).toEqual([]);
  });

  it("that lets the row be seen and not deleted is named", async () => {
    const table = await secured("USING (true)");
    await as(writer);
    const outs = await create(rowIn(table));
    await database.query(`DROP POLICY p0 ON ${table}; CREATE POLICY s ON ${table} FOR SELECT USING (true)`);
    await expect(provider.delete("id", outs)).rejects.toEqual(refused("WriteSuppressed", "retryable", "row security"));
    expect(await recordsOf(table)).toEqual([{ key: ID }]);
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
      for (const table of ["students", "pupils"]) {
        await page.query(
          `CREATE TABLE app.${table} (id text PRIMARY KEY, name text, age int, country text, salary int DEFAULT 7)`,
        );
      }
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
      await provider.delete("id", repaired);
      expect(await page.query("SELECT id FROM app.students")).toEqual([]);

      await page.query("INSERT INTO app.students (id, name) VALUES ('team-a/alex', 'theirs')");
      const adopting = rowIn("app.students", {
        key: { id: "team-a/alex" },
        owner: { uid: "UID of the object", description: "" },
      });
      const conflict = await create(adopting).catch((error: unknown) => error as Error);
      expect(conflict).toEqual(refused("RowConflict", "retryable", "belongs to no object"));
      await page.query((conflict as Error).message.split("overwrites it: ")[1] as string);
      const adopted = await create(adopting);
      expect(await page.query("SELECT name, salary FROM app.students")).toEqual([{ name: "alex", salary: 7 }]);

      await page.query(
        "UPDATE kindstack_ownership.records SET cluster = 'UID of the former cluster', cluster_uid = 'former'",
      );
      await page.query(sqlOf("Several clusters, and a rebuilt one"));
      const owner = { ...adopting.owner, uid: "uid-new", cluster: { name: "production", uid: "new" } };
      await create({ ...adopting, owner });
      for (const row of [adopted, moved]) await provider.release("id", row);

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

  it.each([
    ["renamed", (table: string) => `ALTER TABLE ${table} RENAME TO ${aside(table)}`, aside],
    [
      "moved to another schema",
      (table: string) => `CREATE SCHEMA s${table}; ALTER TABLE ${table} SET SCHEMA s${table}`,
      (table: string) => `s${table}.${table}`,
    ],
    [
      "made a view",
      (table: string) =>
        `ALTER TABLE ${table} RENAME TO ${aside(table)}; CREATE VIEW ${table} AS SELECT * FROM ${aside(table)}`,
      (table: string) => table,
    ],
    [
      "made a partition",
      (table: string) =>
        `ALTER TABLE ${table} RENAME TO ${aside(table)}; CREATE TABLE ${table} (LIKE ${aside(table)} INCLUDING ALL) PARTITION BY HASH (id);
         ALTER TABLE ${table} ATTACH PARTITION ${aside(table)} FOR VALUES WITH (MODULUS 1, REMAINDER 0)`,
      (table: string) => table,
    ],
  ])("%s: nothing changes, and the next name finds the row", async (_, statements, nextName) => {
    const table = await database.createStudents();
    const outs = await create(rowIn(table));
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
    await provider.delete("id", moved);
    expect(await rowsOf(next)).toEqual([]);
  });

  it("is found at deletion, also where nobody has named it", async () => {
    const table = await database.createStudents();
    const outs = await create(rowIn(table));
    await database.query(`ALTER TABLE ${table} RENAME TO ${aside(table)}`);
    await provider.delete("id", outs);
    expect(await rowsOf(aside(table))).toEqual([]);
  });

  it("whose name another table has by now is told, with both ways out", async () => {
    const table = await database.createStudents();
    const outs = await create(rowIn(table));
    await database.query(`ALTER TABLE ${table} RENAME TO ${aside(table)}; CREATE TABLE ${table} (LIKE ${aside(table)} INCLUDING ALL);
      INSERT INTO ${table} SELECT * FROM ${aside(table)}`);
    const replaced = refused(
      "TableReplaced",
      "retryable",
      `now called public.${aside(table)}; public.${table} is another table`,
    );
    const failed = await update(outs, rowIn(table)).catch((error: unknown) => error);
    expect(failed).toEqual(replaced);
    await expect(provider.delete("id", outs)).rejects.toEqual(replaced); // a copy would stay
    expect([await rowsOf(table), await rowsOf(aside(table))].map(({ length }) => length)).toEqual([1, 1]);

    await database.query((failed as Error).message.split("run: ")[1] as string);
    const wanted = rowIn(table, { values: { ...outs.values, age: 25 } });
    const present = await update(outs, wanted);
    expect(await rowsOf(table)).toMatchObject([{ age: 25 }]);
    await provider.delete("id", present);
    expect([await rowsOf(table), await rowsOf(aside(table))].map(({ length }) => length)).toEqual([0, 1]);
  });

  it("that was dropped and made again, empty or with its rows, is the one that the records mean", async () => {
    const table = await database.createStudents();
    const outs = await create(rowIn(table));
    await database.query(
      `CREATE TABLE copy_${table} (LIKE ${table} INCLUDING ALL); DROP TABLE ${table}; ALTER TABLE copy_${table} RENAME TO ${table}`,
    );
    expect(await driftOf(rowIn(table))).toBe(
      `table public.${table} was dropped and made again, row "${ID}" was missing`,
    );
    await update(outs, rowIn(table));
    expect(await driftOf(rowIn(table))).toBeUndefined();
    await database.query(`CREATE TABLE copy_${table} (LIKE ${table} INCLUDING ALL); INSERT INTO copy_${table} SELECT * FROM ${table};
      DROP TABLE ${table}; ALTER TABLE copy_${table} RENAME TO ${table}`);
    await create(rowIn(table, { values: { age: 30 } })); // no conflict with itself
    expect(await rowsOf(table)).toMatchObject([{ id: ID, age: 30 }]);
    expect(await recordsOf(table)).toEqual([{ key: ID }]);
  });

  it("of a database that was restored from a dump is known by its name", async () => {
    const table = await database.createStudents();
    const outs = await create(rowIn(table));
    // As another server has it: the records are the dump's, and the OID there means nothing, or another table.
    await database.query(
      "UPDATE kindstack_ownership.tables SET server = 'the former one', oid = 'pg_class'::regclass WHERE table_name = $1",
      [table],
    );
    expect(await isDrifted(rowIn(table))).toBe(false);
    const wanted = rowIn(table, { values: { ...outs.values, age: 30 } });
    const present = await update(outs, wanted);
    expect(await recordsOf(table)).toEqual([{ key: ID }]);
    await database.query("UPDATE kindstack_ownership.tables SET server = 'again' WHERE table_name = $1", [table]);
    await provider.delete("id", present);
    expect(await rowsOf(table)).toEqual([]);
  });

  it("restored without its records is recorded again by the repair", async () => {
    const table = await database.createStudents();
    const outs = await create(rowIn(table));
    await database.forgetRecords(table);
    expect(await driftOf(rowIn(table))).toBe("the row's owner was not recorded");
    const refreshed = (await read(outs)) as RowOutputs;
    expect(await provider.diff("id", refreshed, rowIn(table))).toMatchObject({ changes: true, replaces: [] });
    await update(refreshed, rowIn(table));
    expect(await recordsOf(table)).toEqual([{ key: ID }]);
    expect(await isDrifted(rowIn(table))).toBe(false);
  });
});
