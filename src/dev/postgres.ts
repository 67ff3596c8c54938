import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import fs from "node:fs/promises";
import path from "node:path";
import { execa } from "execa";
import pRetry from "p-retry";
import { Client } from "pg";
import { portOf } from "./ports";
import { locatePostgres, type PostgresInstallation, passwordFileOf } from "./postgres-installation";
import { programName } from "./process";
import { type Component, ComponentFailedError, type Log, type Supervisor } from "./supervisor";

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

export async function startPostgres(supervisor: Supervisor, server: string, log: Log): Promise<PostgresSettings> {
  const { layout, signal } = supervisor;
  log("starting PostgreSQL");
  const installation = await locatePostgres(layout, server);
  const { dataDirectory } = installation;
  const password = await initialisePostgres(installation);
  if (dataDirectory !== layout.postgres) {
    log(`PostgreSQL's user cannot access ${layout.directory}; its data lies in ${dataDirectory}`);
  }
  await removeMisleadingPidFile(dataDirectory);
  const settings = {
    host: "127.0.0.1",
    port: await portOf(layout, "postgres"),
    database: DATABASE,
    user: USER,
    password,
  };
  const component = postgres(installation, settings);
  // The processes of a killed server exit a moment later; until then, a new one refuses to start.
  await pRetry(() => supervisor.start(component), {
    retries: 3,
    minTimeout: 500,
    signal,
    shouldRetry: ({ error }) => error instanceof ComponentFailedError && error.message.includes("still in use"),
  });
  await prepareDatabase(settings);
  return settings;
}

/** Creates the data directory and the password of the database's user, once. */
async function initialisePostgres({ bin, dataDirectory, owner }: PostgresInstallation): Promise<string> {
  const passwordFile = passwordFileOf(dataDirectory);
  if (existsSync(dataDirectory)) return fs.readFile(passwordFile, "utf8");

  const password = randomBytes(24).toString("base64url");
  await fs.writeFile(passwordFile, password, { mode: 0o600 });
  const aside = `${dataDirectory}.new`; // what an interrupted run left there is of no use
  await fs.rm(aside, { recursive: true, force: true });
  await fs.mkdir(aside, { mode: 0o700 });
  const passwordForInitdb = path.join(aside, "password"); // initdb may run as another user
  await fs.writeFile(passwordForInitdb, password, { mode: 0o600 });
  if (owner !== undefined) {
    for (const file of [aside, passwordForInitdb]) await fs.chown(file, owner.uid, owner.gid);
  }
  const made = path.join(aside, "data");
  // The rules for text are PostgreSQL's own, whatever locales this machine has.
  const locale = ["--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"];
  const access = [`--username=${USER}`, "--auth=scram-sha-256", `--pwfile=${passwordForInitdb}`];
  const result = await execa(path.join(bin, "initdb"), [`--pgdata=${made}`, ...access, ...locale, "--no-sync"], {
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

/**
 * After a crash, PostgreSQL judges by its pid file whether an earlier server, or a part of it, still has the data open.
 * It cannot tell that another program has reused the pid, and would never start.
 */
async function removeMisleadingPidFile(dataDirectory: string): Promise<void> {
  const file = path.join(dataDirectory, "postmaster.pid");
  const pid = Number.parseInt(await fs.readFile(file, "utf8").catch(() => ""), 10);
  const program = Number.isNaN(pid) ? undefined : programName(pid);
  if (program !== undefined && program !== "postgres") await fs.rm(file);
}

function postgres({ bin, dataDirectory, owner }: PostgresInstallation, settings: PostgresSettings): Component {
  const options = ["listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=200"];
  return {
    name: "postgres",
    command: path.join(bin, "postgres"),
    args: ["-D", dataDirectory, "-p", String(settings.port), ...options.flatMap((option) => ["-c", option])],
    ...owner,
    env: { LC_ALL: "C" },
    port: settings.port,
    tier: 1,
    stopSignal: "SIGINT", // PostgreSQL's "fast shutdown": it ends sessions instead of waiting for them
    stopSeconds: 20,
    isHealthy: () => withClient({ ...settings, database: "postgres" }, () => true),
  };
}

/** Creates the database and the table of the samples where they are missing. */
async function prepareDatabase(settings: PostgresSettings): Promise<void> {
  await withClient({ ...settings, database: "postgres" }, async (client) => {
    const { rowCount } = await client.query("select from pg_database where datname = $1", [DATABASE]);
    if (rowCount === 0) await client.query(`create database ${DATABASE}`);
  });
  await withClient(settings, (client) =>
    client.query(
      "create table if not exists public.students (id text primary key, name text not null, age integer not null, country text not null)",
    ),
  );
}

export async function withClient<T>(settings: PostgresSettings, work: (client: Client) => T | Promise<T>): Promise<T> {
  const client = new Client({ ...settings, connectionTimeoutMillis: 10_000 });
  client.on("error", () => {}); // a lost connection also fails the query at hand
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
