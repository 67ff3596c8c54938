import { randomBytes } from "node:crypto";
import fs from "node:fs/promises";
import path from "node:path";
import { execa } from "execa";
import { Client } from "pg";
import type { PostgresInstallation } from "./postgres-installation";
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

/** Makes the data directory, once, and with it the password of the database's user, which is returned. */
export async function initialisePostgres(installation: PostgresInstallation): Promise<string> {
  const { dataDirectory, passwordFile, initdb, owner } = installation;
  const initialised = await fs.access(dataDirectory).then(
    () => true,
    () => false,
  );
  if (initialised) return fs.readFile(passwordFile, "utf8");

  const password = randomBytes(24).toString("base64url");
  await fs.writeFile(passwordFile, password, { mode: 0o600 });
  const aside = `${dataDirectory}.new`; // what an interrupted run left there is of no use
  await fs.rm(aside, { recursive: true, force: true });
  await fs.mkdir(aside, { mode: 0o700 });
  const passwordForInitdb = path.join(aside, "password"); // which may run as someone else
  await fs.writeFile(passwordForInitdb, password, { mode: 0o600 });
  if (owner !== undefined) {
    for (const file of [aside, passwordForInitdb]) await fs.chown(file, owner.uid, owner.gid);
  }
  const made = path.join(aside, "data");
  // The rules for text are PostgreSQL's own, whatever locales this machine has.
  const locale = ["--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"];
  const access = [`--username=${USER}`, "--auth=scram-sha-256", `--pwfile=${passwordForInitdb}`];
  const result = await execa(initdb, [`--pgdata=${made}`, ...access, ...locale, "--no-sync"], {
    cwd: aside,
    ...owner,
    env: { LC_ALL: "C" },
    all: true,
    reject: false,
  });
  if (result.failed) {
    throw new Error(`cannot create PostgreSQL's data directory: ${result.all || result.shortMessage}`);
  }
  await fs.rename(made, dataDirectory);
  await fs.rm(aside, { recursive: true });
  return password;
}

/** The database server on an initialised data directory. */
export async function postgres(installation: PostgresInstallation, settings: PostgresSettings): Promise<Component> {
  await removeMisleadingPidFile(installation.dataDirectory);
  return {
    name: "postgres",
    command: installation.server,
    cwd: installation.dataDirectory,
    ...installation.owner,
    env: { LC_ALL: "C" },
    port: settings.port,
    tier: 1,
    stopSignal: "SIGINT", // PostgreSQL's "fast shutdown": it ends sessions instead of waiting for them
    stopSeconds: 20,
    startSeconds: 60,
    isHealthy: () => withClient({ ...settings, database: "postgres" }, () => true),
    args: [
      "-D",
      installation.dataDirectory,
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
async function removeMisleadingPidFile(dataDirectory: string): Promise<void> {
  const file = path.join(dataDirectory, "postmaster.pid");
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
