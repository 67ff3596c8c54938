import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { closePool } from "../../../providers/postgres/pool";
import type { RowOutputs } from "../../../providers/postgres/row-inputs";
import { eventually } from "../../../src/testing/eventually";
import { errorOf, retryable } from "../failures";
import { rowIn } from "./database";
import { create as createRow, driftOf, remove, update } from "./rows";
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
const create = (id: string): Promise<RowOutputs> => createRow(wanted(id));
const drifted = (id: string, age = 23) => driftOf(wanted(id, age));
/** A database of this name with a table of students. */
async function createDatabase(server: Server, name: string): Promise<void> {
  await queryServer(server, "postgres", `CREATE DATABASE ${name}`);
  await queryServer(server, name, STUDENTS);
}

describe("a replica", () => {
  it("takes no writes, has its rows compared, and takes writes when it has been promoted", async () => {
    const first = await servers.start();
    await createDatabase(first, "moving");
    const standby = await servers.standby(first);
    use("moving", standby, first);
    const outs = await create("a"); // the replica is passed over
    await closePool();
    use("moving", standby);
    await eventually(async () => expect(await queryServer(standby, "moving", "SELECT FROM students")).toHaveLength(1));
    await expect(create("b")).rejects.toEqual(retryable("DatabaseReadOnly", /read-only/));
    expect(await drifted("a")).toBeUndefined();
    // The record follows by the table's OID.
    await queryServer(first, "moving", "ALTER TABLE students RENAME TO pupils; UPDATE pupils SET age = 1");
    await eventually(async () => expect(await drifted("a")).toBe('column "age" was "1" in place of "23"'));

    await first.kill();
    use("moving", standby, first);
    const nowhere = new RegExp(`no host takes writes: .*:${standby.port}: it is read-only`);
    await eventually(async () => expect((await errorOf(create("b"))).message).toMatch(nowhere));
    expect(await queryServer(standby, "moving", "SELECT id FROM pupils")).toEqual([{ id: "a" }]);
    expect(await queryServer(standby, "moving", "SELECT key FROM kindstack_ownership.records")).toEqual([{ key: "a" }]);

    await servers.promote(standby);
    const changed = await eventually(() => update(outs, wanted("a", 24)));
    expect(await drifted("a", 24)).toBeUndefined();
    await remove(changed);
    expect(await queryServer(standby, "moving", "SELECT id FROM pupils")).toEqual([]);
  });
});

describe("a database that was restored from a dump", () => {
  let outs: RowOutputs;
  let database: string;
  let number = 0;
  beforeEach(async () => {
    database = `dumped${++number}`;
    await createDatabase(primary, database);
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
    const restored = `${database}_restored`;
    await restore(server, restored);
    expect(await drifted("a")).toBeUndefined();
    const other = { ...wanted("a"), owner: { uid: "other", description: "other" } };
    await expect(createRow(other)).rejects.toEqual(retryable("RowConflict", /belongs to a/));
    const changed = await update(outs, wanted("a", 24));
    expect(await records(server, restored)).toEqual([{ key: "a", owner: "a" }]);
    await queryServer(server, restored, "ALTER TABLE students RENAME TO pupils");
    await remove(changed);
    expect(await queryServer(server, restored, "SELECT id FROM pupils")).toEqual([]);
    if (elsewhere) await server.kill();
  });

  it("without the rows has them written again", async () => {
    await restore(primary, `${database}_empty`, "--exclude-table-data=public.students");
    expect(await drifted("a")).toMatch(
      /^table public.students is that of another server or database, .*, row "a" was missing$/,
    );
    await update(outs, wanted("a"));
    expect(await queryServer(primary, `${database}_empty`, "SELECT age FROM students")).toEqual([{ age: 23 }]);
  });
});
