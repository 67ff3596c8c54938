import fs from "node:fs";
import path from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { RetryableError } from "../../../providers/errors";
import { findDriftedRows } from "../../../providers/postgres/drift";
import { type Connection, closePool, withTransaction } from "../../../providers/postgres/pool";
import type { RowInputs, RowOutputs } from "../../../providers/postgres/row-inputs";
import { eventually } from "../../../src/testing/eventually";
import { controlPlane } from "../../control-plane";
import { useDirectory } from "../../directories";
import { PostgresProxy } from "../../faults/postgres-proxy";
import { TestAuthority } from "../../tls/test-authority";
import { errorOf, retryable } from "../failures";
import { RECORDS_RIGHTS, rowIn, useDatabase } from "./database";
import { startPgBouncer } from "./pgbouncer";
import { createdRow, create as createRow, read, remove, update } from "./rows";

const { env } = controlPlane();
const { PSQL_HOST: host = "", PSQL_PORT = "", PSQL_USER: user = "", PSQL_PASSWORD: password = "" } = env;
const server = { host, port: Number(PSQL_PORT) };
const database = useDatabase();
const directory = useDirectory();
let role: string;
let table: string;

beforeAll(async () => {
  ({ table } = await createdRow(database)); // makes the records
  role = await database.createRole("login", `${RECORDS_RIGHTS} GRANT ALL ON ${table} TO %`);
});
afterEach(async () => {
  await closePool();
  database.use();
});

let rows = 0;
const create = async (changes: Partial<RowInputs> = {}): Promise<RowOutputs> =>
  createRow(rowIn(table, { key: { id: `row-${++rows}` }, ...changes }));
const endSessionsOf = (name: string) =>
  database.query(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1 AND pid <> pg_backend_pid()",
    [name],
  );

describe("through PgBouncer in transaction mode, with its defaults", () => {
  it("rows are written, changed, compared, read and deleted, many at once", async () => {
    await using pooler = await startPgBouncer(server, { [user]: password });
    database.use({ PSQL_PORT: String(pooler.port) });
    const owners = Array.from({ length: 40 }, (_, index) => ({ uid: String(index), description: "" }));
    const all = await Promise.all(owners.map((owner) => create({ owner })));
    const updated = await Promise.all(all.map((outs) => update(outs, { ...outs, values: { age: 24 } })));
    await database.query(`UPDATE ${table} SET age = 99 WHERE id = $1`, [all[7]?.key.id]);
    const wanted = updated.map((outs, index) => ({ ...outs, uid: String(index) }));
    expect(await findDriftedRows(wanted)).toEqual({
      drifted: new Map([["7", 'column "age" was "99" in place of "24"']]),
      unknown: new Map(),
    });
    expect((await read(updated[7] as RowOutputs))?.values).toEqual({ age: "99" });
    await Promise.all(updated.map(remove));
    expect(await database.query(`SELECT FROM ${table} WHERE id LIKE 'row-%'`)).toEqual([]);
  });

  it("a refusal of the pooler's own is not called a lost connection", async () => {
    await using pooler = await startPgBouncer(server, { other: "x" });
    database.use({ PSQL_PORT: String(pooler.port) });
    const reason = expect.stringMatching(/^(AuthenticationFailed|ConnectionFailed)$/);
    await expect(create()).rejects.toMatchObject({ errorClass: "retryable", reason });
  });
});

describe("prepared statements", () => {
  const preparedOn = async (connection: Connection) =>
    (await connection.query("SELECT name FROM pg_prepared_statements")).rows.length;
  const given = (text: string) => withTransaction(undefined, (connection) => connection.query(text, [1]));

  it("are used where a connection leads to the server, and only so many", async () => {
    database.use({ PSQL_POOL_SIZE: "1" });
    await create();
    expect(await withTransaction(undefined, preparedOn)).toBeGreaterThan(0);
    for (let index = 0; index < 100; index++) await given(`SELECT ${index} + $1::int`);
    expect(await withTransaction(undefined, preparedOn)).toBe(64);
  });

  it("are not used behind a pooler, whose transactions have one session after another", async () => {
    await using pooler = await startPgBouncer(server, { [user]: password });
    database.use({ PSQL_PORT: String(pooler.port) });
    await create();
    expect(await withTransaction(undefined, preparedOn)).toBe(0);
  });

  it.each([
    ["a table has another column since", 1, () => database.query(`ALTER TABLE ${table} ADD COLUMN later text`)],
    ["the session has lost them", 0, () => given("SELECT pg_temp.forget($1)")],
  ])("are done without where %s", async (_what, columns, outdate) => {
    database.use({ PSQL_POOL_SIZE: "1" });
    await withTransaction(undefined, (connection) =>
      connection.query(
        "CREATE FUNCTION pg_temp.forget(int) RETURNS void LANGUAGE plpgsql AS 'BEGIN EXECUTE ''DEALLOCATE ALL''; END'",
      ),
    );
    const read = () => given(`SELECT * FROM ${table} WHERE 1 = $1::int`);
    const before = await read();
    await outdate();
    expect((await read()).fields.length).toBe(before.fields.length + columns);
    await create();
  });
});

describe("a password", () => {
  const passwordFile = path.join(directory, "password");
  const rotate = (to: string) => database.query(`ALTER ROLE ${role} PASSWORD '${to}'`);

  it("that is rotated is read from its file at the next use", async () => {
    await rotate("first");
    fs.writeFileSync(passwordFile, "first");
    database.use({ PSQL_USER: role, PSQL_PASSWORD: "not used", PSQL_PASSWORD_FILE: passwordFile });
    await create();
    await rotate("second");
    await endSessionsOf(role);
    await eventually(() => expect(create()).rejects.toEqual(retryable("AuthenticationFailed", role)));
    fs.writeFileSync(passwordFile, "second\n");
    await create();
  });

  it("that is rotated does not fail who waits for a connection with the former one", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    database.use({ PSQL_POOL_SIZE: "1" });
    const [taken, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const holding = withTransaction(undefined, async () => {
      taken.resolve();
      await released.promise;
    });
    await taken.promise;
    const waiting = create();
    database.use({ PSQL_POOL_SIZE: "2" }); // as another password, it makes another pool
    vi.advanceTimersByTime(1_000);
    await withTransaction(undefined, async () => undefined);
    released.resolve();
    await holding;
    await waiting;
    vi.useRealTimers();
  });

  it("is read from a mounted folder, which may name another user", async () => {
    await rotate("third");
    const secret = fs.mkdtempSync(path.join(directory, "secret-"));
    fs.writeFileSync(path.join(secret, "PSQL_PASSWORD"), "third");
    fs.writeFileSync(path.join(secret, "PSQL_USER"), role);
    database.use({ PSQL_DIRECTORY: secret });
    await create();
    expect(await database.query("SELECT FROM pg_stat_activity WHERE usename = $1", [role])).not.toEqual([]);
  });

  it("may be in the file that PGPASSFILE names", async () => {
    await rotate("fourth");
    const passFile = path.join(directory, "pgpass");
    fs.writeFileSync(passFile, `${server.host}:*:*:${role}:fourth\n`, { mode: 0o600 });
    database.use({ PSQL_USER: role, PSQL_PASSWORD: undefined, PGPASSWORD: undefined, PGPASSFILE: passFile });
    await create();
  });
});

describe("TLS", () => {
  const sql = (text: string) => database.query(text);
  const put = (file: string, content: string) => {
    const lines = `SELECT unnest(string_to_array($$${content.trimEnd()}$$, E'\\n'))`;
    return sql(`COPY (${lines}) TO PROGRAM 'umask 077; cat > "${file}"'`);
  };
  const files = { ssl_cert_file: "test.crt", ssl_key_file: "test.key", ssl_ca_file: "test-ca.crt" };
  const settings = Object.entries({ ...files, ssl: "on" });
  let authority: TestAuthority;
  let data: string;
  let hba: string;
  const caFile = path.join(directory, "ca.pem");

  const serve = async (by: TestAuthority) => {
    const { certificate, key } = await by.server();
    await put(`${data}/test.crt`, certificate);
    await put(`${data}/test.key`, key);
    await sql("SELECT pg_reload_conf()");
  };

  beforeAll(async () => {
    authority = await TestAuthority.create();
    fs.writeFileSync(caFile, authority.own.certificate);
    const [found] = await database.query<{ data: string; hba: string }>(
      "SELECT current_setting('data_directory') AS data, pg_read_file(current_setting('hba_file')) AS hba",
    );
    ({ data = "", hba = "" } = found ?? {});
    await put(`${data}/test-ca.crt`, authority.own.certificate);
    await put(`${data}/pg_hba.conf`, `hostssl all ${role} 127.0.0.1/32 cert\n${hba}`);
    await serve(authority);
    for (const [name, value] of settings) await sql(`ALTER SYSTEM SET ${name} = '${value}'`);
    await sql("SELECT pg_reload_conf()");
  });
  afterAll(async () => {
    for (const [name] of settings.toReversed()) await sql(`ALTER SYSTEM RESET ${name}`);
    await put(`${data}/pg_hba.conf`, hba);
    await sql("SELECT pg_reload_conf()");
  });

  it("refuses a server of another CA, until its file has that one", async () => {
    const other = await TestAuthority.create();
    await serve(other);
    database.use({ PGSSLMODE: "verify-full", PSQL_CA_FILE: caFile });
    await expect(create()).rejects.toEqual(retryable("TlsFailed", "certificate"));
    fs.writeFileSync(caFile, other.own.certificate);
    await create();
    fs.writeFileSync(caFile, authority.own.certificate);
    await serve(authority);
  });

  it("presents a client's certificate in place of a password", async () => {
    const { certificate, key } = await authority.user(role);
    const [certFile, keyFile] = [path.join(directory, "client.pem"), path.join(directory, "client.key")];
    fs.writeFileSync(certFile, certificate);
    fs.writeFileSync(keyFile, key);
    const tls = { PGSSLMODE: "verify-full", PSQL_CA_FILE: caFile, PSQL_USER: role, PSQL_PASSWORD: undefined };
    database.use({ ...tls, PSQL_CERT_FILE: certFile, PSQL_KEY_FILE: keyFile });
    await create();
    await closePool();
    database.use(tls);
    const reason = expect.stringMatching(/^(AuthenticationFailed|TlsFailed)$/);
    const message = expect.stringContaining("certificate");
    await expect(create()).rejects.toMatchObject({ errorClass: "retryable", reason, message });
  });
});

it("rows that are made, changed or compared need few round trips, however many they are", async () => {
  const proxy = await PostgresProxy.start(server);
  try {
    database.use({ PSQL_PORT: String(proxy.port), PSQL_POOL_SIZE: "1" });
    const outs = await create();
    const needed = async (work: () => Promise<unknown>) => {
      const before = proxy.roundTrips;
      await work();
      return proxy.roundTrips - before;
    };
    const wanted = rowIn(table, { key: outs.key, values: { age: 1 } });
    expect({
      create: await needed(() => create()),
      createMany: await needed(() => Promise.all(Array.from({ length: 30 }, () => create()))),
      update: await needed(() => update(outs, wanted)),
      compare: await needed(() => findDriftedRows([{ ...wanted, uid: wanted.owner.uid }])),
    }).toEqual({ create: 4, createMany: 8, update: 4, compare: 6 }); // of many, the first one does not wait
  } finally {
    proxy.close();
  }
});

it("several hosts are tried in turn, and the one that takes writes is used, also after it has moved", async () => {
  const readOnly = "SET default_transaction_read_only = on";
  await using replica = await startPgBouncer(server, { [user]: password }, readOnly);
  const [first, second] = [await PostgresProxy.start(server), await PostgresProxy.start(server)];
  try {
    const hosts = ["127.0.0.1", "127.0.0.1", "127.0.0.1"].join();
    database.use({ PSQL_HOST: hosts, PSQL_PORT: [replica.port, first.port, second.port].join() });
    await create();
    expect([first.connections, second.connections]).toEqual([1, 0]);
    first.faults.down = true;
    first.cut();
    await eventually(() => create());
    expect(second.connections).toBe(1);
    second.faults.down = true;
    second.cut();
    const all = `no host takes writes: .*(:${first.port}: .*:${second.port}: |it is read-only)`;
    await eventually(async () => {
      const { message } = await errorOf(create());
      expect(message).toMatch(new RegExp(all));
    });
  } finally {
    for (const proxy of [first, second]) proxy.close();
  }
});

it("a transaction whose fence has ended is not ended by the next one", async () => {
  let mayWrite = true;
  const check = () => {
    if (!mayWrite) throw new RetryableError("LeaseLost", "another one goes on");
  };
  const fence = { check, signal: new AbortController().signal };
  const writing = withTransaction(fence, async (connection) => {
    await connection.query(`INSERT INTO ${table} (id) VALUES ('fenced')`);
    mayWrite = false;
  });
  await expect(writing).rejects.toEqual(retryable("LeaseLost", /./));
  await create();
  expect(await database.query(`SELECT FROM ${table} WHERE id = 'fenced'`)).toEqual([]);
});

describe("a database that is in trouble", () => {
  it("takes writes again after it was read-only, with no half of a change before", async () => {
    await create();
    await database.query(`ALTER DATABASE ${database.name} SET default_transaction_read_only = on`);
    await endSessionsOf(user);
    const before = await database.query("SELECT * FROM kindstack_ownership.records");
    await eventually(() => expect(create()).rejects.toEqual(retryable("DatabaseReadOnly", "read-only")));
    await database.query(`ALTER DATABASE ${database.name} RESET default_transaction_read_only`);
    expect(await database.query("SELECT * FROM kindstack_ownership.records")).toEqual(before);
    await create(); // not on a connection of that time
  });

  it("whose connections are used up is tried again", async () => {
    await database.query(`ALTER ROLE ${role} PASSWORD 'limited' CONNECTION LIMIT 0`);
    database.use({ PSQL_USER: role, PSQL_PASSWORD: "limited" });
    await expect(create()).rejects.toEqual(retryable("TooManyConnections", "too many connections"));
    await database.query(`ALTER ROLE ${role} CONNECTION LIMIT -1`);
    await create();
  });

  it("is not held to the role's statement_timeout: each transaction sets its own", async () => {
    const slow = await slowTable("0.3");
    await database.query(`ALTER ROLE ${role} SET statement_timeout = '100ms'`);
    await createRow(rowIn(slow));
    expect(await database.rowsOf(slow)).toHaveLength(1);
    await database.query(`ALTER ROLE ${role} RESET statement_timeout`);
  });

  it.each([
    ["transaction_timeout", /transaction timeout/],
    ["idle_in_transaction_session_timeout", /idle-in-transaction timeout|terminated/],
  ])("that ends transactions by the role's %s leaves nothing half done", async (setting, message) => {
    const slow = await slowTable("0");
    await database.query(`ALTER ROLE ${role} SET ${setting} = '1s'`);
    const proxy = await PostgresProxy.start(server);
    try {
      database.use({ PSQL_PORT: String(proxy.port), PSQL_USER: role, PSQL_PASSWORD: "x" });
      proxy.faults.delayMs = 1_500; // the server waits for the client
      await expect(createRow(rowIn(slow))).rejects.toEqual(retryable("ConnectionLost", message));
      expect([await database.rowsOf(slow), await database.recordsOf(slow)]).toEqual([[], []]);
      proxy.faults.delayMs = 0;
      await createRow(rowIn(slow));
    } finally {
      proxy.close();
      await database.query(`ALTER ROLE ${role} RESET ${setting}`);
    }
  });

  it("that an administrator ends in the middle of a write leaves nothing half done", async () => {
    const slow = await slowTable("60");
    const writing = createRow(rowIn(slow));
    const ended = expect(writing).rejects.toEqual(retryable("DatabaseUnavailable", /administrator command/)); // 57P01
    await eventually(async () => {
      const ends = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1 AND wait_event = 'PgSleep'`;
      expect(await database.query(ends, [role])).toHaveLength(1);
    });
    await ended;
    expect([await database.rowsOf(slow), await database.recordsOf(slow)]).toEqual([[], []]);
    await database.query(`ALTER TABLE ${slow} DISABLE TRIGGER wait`);
    await createRow(rowIn(slow));
  });

  /** A table whose rows take so many seconds, for the other role. */
  async function slowTable(seconds: string): Promise<string> {
    const slow = await database.createStudents();
    const sleeping = `PERFORM pg_sleep(${seconds}); RETURN NEW;`;
    await database.createTrigger(`CREATE TRIGGER wait AFTER INSERT ON ${slow}`, sleeping);
    await database.query(`GRANT ALL ON ${slow} TO ${role}; ALTER ROLE ${role} PASSWORD 'x'`);
    await database.useAs(role);
    return slow;
  }
});
