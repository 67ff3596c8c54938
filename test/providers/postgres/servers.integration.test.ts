import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { findDriftedRows } from "../../../providers/postgres/drift";
import { closePool } from "../../../providers/postgres/pool";
import { provider } from "../../../providers/postgres/row";
import type { RowOutputs } from "../../../providers/postgres/row-inputs";
import { eventually } from "../../../src/testing/eventually";
import { rowIn } from "./database";
import { at, OWNER, queryServer, type Server, Servers } from "./servers";

/* Replication, backups and restores, with PostgreSQL's own programs. */

const STUDENTS = "CREATE TABLE students (id text PRIMARY KEY, name text, age integer, country text)";
let servers: Servers;
let primary: Server;

beforeAll(async () => {
  servers = await Servers.open();
  primary = await servers.start();
});
afterAll(() => servers[Symbol.asyncDispose]());
beforeEach(() => {
  for (const name of ["PSQL_DIRECTORY", "PSQL_PASSWORD", "KINDSTACK_POSTGRES_TABLES"]) vi.stubEnv(name, undefined);
  vi.stubEnv("PSQL_USER", OWNER);
  vi.stubEnv("PSQL_HOST", "127.0.0.1");
});
afterEach(async () => {
  await closePool();
  vi.unstubAllEnvs();
});

const use = (database: string, ...those: Server[]) => {
  vi.stubEnv("PSQL_DBNAME", database);
  vi.stubEnv("PSQL_HOST", those.map(() => "127.0.0.1").join());
  vi.stubEnv("PSQL_PORT", those.map(({ port }) => port).join());
};
const wanted = (id: string, age = 23) =>
  rowIn("students", { key: { id }, values: { age }, owner: { uid: id, description: id } });
const create = async (id: string): Promise<RowOutputs> => (await provider.create(wanted(id))).outs;
const drifted = async (id: string, age = 23) =>
  (await findDriftedRows([{ ...wanted(id, age), uid: id }])).drifted.get(id);
const refused = (reason: string, message: RegExp) =>
  expect.objectContaining({ reason, errorClass: "retryable", message: expect.stringMatching(message) });

describe("a replica", () => {
  it("takes no writes, and its rows can be compared", async () => {
    await queryServer(primary, "postgres", "CREATE DATABASE alone");
    await queryServer(primary, "alone", STUDENTS);
    use("alone", primary);
    await create("a");
    await closePool();
    const standby = await servers.standby(primary);
    use("alone", standby);
    await expect(create("b")).rejects.toEqual(refused("DatabaseReadOnly", /read-only/));
    expect(await drifted("a")).toBeUndefined();
    await queryServer(primary, "alone", "UPDATE students SET age = 1");
    await eventually(async () => expect(await drifted("a")).toBe('column "age" was "1" in place of "23"'));
    await standby.kill();
  });

  it("is passed over for the server that takes writes, and takes them when it has been promoted", async () => {
    const first = await servers.start();
    await queryServer(first, "postgres", "CREATE DATABASE moving");
    await queryServer(first, "moving", STUDENTS);
    const standby = await servers.standby(first);
    use("moving", standby, first);
    const outs = await create("a");
    await queryServer(first, "moving", "ALTER TABLE students RENAME TO pupils"); // the record follows by the table's OID
    await eventually(async () =>
      expect(await queryServer(standby, "moving", "SELECT age FROM pupils")).toEqual([{ age: 23 }]),
    );

    await first.kill();
    const nowhere = new RegExp(`no host takes writes: .*:${standby.port}: it is read-only`);
    await eventually(() =>
      expect(create("b")).rejects.toMatchObject({ errorClass: "retryable", message: expect.stringMatching(nowhere) }),
    );
    expect(await queryServer(standby, "moving", "SELECT id FROM pupils")).toEqual([{ id: "a" }]);
    expect(await queryServer(standby, "moving", "SELECT key FROM kindstack_ownership.records")).toEqual([{ key: "a" }]);

    await servers.promote(standby);
    const changed = await eventually(async () => (await provider.update("id", outs, wanted("a", 24))).outs);
    expect(await drifted("a", 24)).toBeUndefined();
    await provider.delete("id", changed);
    expect(await queryServer(standby, "moving", "SELECT id FROM pupils")).toEqual([]);
  });
});

describe("a database that was restored from a dump", () => {
  let outs: RowOutputs;
  let database: string;
  let number = 0;
  beforeEach(async () => {
    database = `dumped${++number}`;
    await queryServer(primary, "postgres", `CREATE DATABASE ${database}`);
    await queryServer(primary, database, STUDENTS);
    use(database, primary);
    outs = await create("a");
    await closePool();
  });

  /** Restores the database on a server under a name, with what the dump leaves out left out. */
  const restore = async (server: Server, name: string, ...left: string[]) => {
    const file = `${database}.dump`;
    await servers.run("pg_dump", ...at(primary), "--format=custom", `--file=${file}`, ...left, database);
    await queryServer(server, "postgres", `CREATE DATABASE ${name}`);
    await servers.run("pg_restore", ...at(server), "--exit-on-error", `--dbname=${name}`, file);
    use(name, server);
  };
  const records = (server: Server, name: string) =>
    queryServer(server, name, "SELECT key, owner FROM kindstack_ownership.records");

  it.each([
    ["on another server", true],
    ["beside the former one", false],
  ])("%s has its rows and their owners", async (_, elsewhere) => {
    const server = elsewhere ? await servers.start() : primary;
    // Objects that were made before: none of the former server's OIDs means the same table.
    await queryServer(server, "postgres", "CREATE TABLE IF NOT EXISTS other ()");
    await restore(server, `${database}_restored`);
    expect(await drifted("a")).toBeUndefined();
    await expect(provider.create({ ...wanted("a"), owner: { uid: "other", description: "other" } })).rejects.toEqual(
      refused("RowConflict", /belongs to a/),
    );
    const changed = (await provider.update("id", outs, wanted("a", 24))).outs;
    expect(await records(server, `${database}_restored`)).toEqual([{ key: "a", owner: "a" }]);
    await queryServer(server, `${database}_restored`, "ALTER TABLE students RENAME TO pupils");
    await provider.delete("id", changed);
    expect(await queryServer(server, `${database}_restored`, "SELECT id FROM pupils")).toEqual([]);
    if (elsewhere) await server.kill();
  });

  it("without the records is recorded again by the repair", async () => {
    await restore(primary, `${database}_bare`, "--exclude-schema=kindstack_ownership");
    expect(await drifted("a")).toBe("the database had no records of owners");
    const { props } = await provider.read("id", outs);
    await provider.update("id", props as RowOutputs, wanted("a"));
    expect(await records(primary, `${database}_bare`)).toEqual([{ key: "a", owner: "a" }]);
    expect(await drifted("a")).toBeUndefined();
  });

  it("without the records is emptied by a deletion all the same", async () => {
    await restore(primary, `${database}_gone`, "--exclude-schema=kindstack_ownership");
    await provider.delete("id", outs);
    expect(await queryServer(primary, `${database}_gone`, "SELECT id FROM students")).toEqual([]);
  });

  it("without the rows has them written again", async () => {
    await restore(primary, `${database}_empty`, "--exclude-table-data=public.students");
    expect(await drifted("a")).toMatch(
      /^table public.students is that of another server or database, .*, row "a" was missing$/,
    );
    await provider.update("id", outs, wanted("a"));
    expect(await queryServer(primary, `${database}_empty`, "SELECT age FROM students")).toEqual([{ age: 23 }]);
  });
});
