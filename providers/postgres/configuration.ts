/// <reference path="./pgpass.d.ts" />
import fs from "node:fs";
import path from "node:path";
import type { ConnectionOptions } from "node:tls";
import type { PoolConfig } from "pg";
import pgpass from "pgpass";
import Type from "typebox";
import { Compile } from "typebox/compile";
import Value from "typebox/value";
import { TerminalError } from "../errors";

const FILE = Type.Optional(Type.String({ minLength: 1 }));

/**
 * The variables that say where the database is. Of PGSSLMODE's usual values, `allow` and `prefer` are not supported: they
 * fall back to a connection that is not encrypted, without saying so.
 */
const Environment = Type.Object({
  /** Several, separated by commas, are tried in turn; the first one that accepts writes is taken. */
  PSQL_HOST: Type.String({ pattern: "^[^,\\s]+(,[^,\\s]+)*$" }),
  /** One for all hosts, or one for each. */
  PSQL_PORT: Type.String({ pattern: "^[0-9]+(,[0-9]+)*$", default: "5432" }),
  PSQL_DBNAME: Type.String({ minLength: 1 }),
  PSQL_USER: Type.String({ minLength: 1 }),
  /** Without it and the file, PGPASSWORD, or else the password in the file that PGPASSFILE names. */
  PSQL_PASSWORD: Type.Optional(Type.String()),
  PSQL_PASSWORD_FILE: FILE,
  PSQL_POOL_SIZE: Type.Integer({ minimum: 1, maximum: 1000, default: 10 }),
  /** CA certificates in PEM; without it, the CAs that Node.js trusts. */
  PSQL_CA_FILE: FILE,
  /** The client's certificate and its key in PEM, where the database asks for them. */
  PSQL_CERT_FILE: FILE,
  PSQL_KEY_FILE: FILE,
  /**
   * `require` encrypts and trusts any server, unless there is a CA file (as in PostgreSQL's own clients); `verify-ca`
   * trusts servers with a certificate of the CA; `verify-full` trusts such a server if the certificate names it.
   */
  PGSSLMODE: Type.Enum(["disable", "require", "verify-ca", "verify-full"], { default: "disable" }),
});
type Environment = Type.Static<typeof Environment>;

const validator = Compile(Environment);

/** Names a folder with a file for each of the variables above, as a mounted Secret has them. They replace the variables. */
const DIRECTORY = "PSQL_DIRECTORY";

const CONNECT_TIMEOUT_MS = 5_000;
/** How long a statement may take that only reads, such as the comparison of thousands of rows. */
export const READ_TIMEOUT_MS = 15_000;
/** How long an update waits for another session's lock; its other rows wait as well. */
export const LOCK_TIMEOUT_MS = 500;

interface Host {
  host: string;
  port: number;
}

/** A pool's configuration, as far as it is plain data. */
export type PoolSettings = PoolConfig & Host;

/**
 * The configuration of a connection pool for each host, from the environment and the files that it names, as they are now.
 *
 * @throws TerminalError `PostgresNotConfigured` naming the variable and what is allowed, never the password
 */
export function poolSettings(environment: NodeJS.ProcessEnv): PoolSettings[] {
  const settings = parseEnvironment({ ...environment, ...filesOf(environment[DIRECTORY]) });
  const given =
    fileContent(settings, "PSQL_PASSWORD_FILE", environment)?.trimEnd() ??
    settings.PSQL_PASSWORD ??
    environment.PGPASSWORD;
  const common: PoolConfig = {
    database: settings.PSQL_DBNAME,
    user: settings.PSQL_USER,
    pipeline: true,
    max: settings.PSQL_POOL_SIZE,
    ssl: tlsOptions(settings, environment),
    application_name: "kindstack",
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    // The server's own time-outs, which each transaction sets, do not help when the server is what has gone silent.
    query_timeout: READ_TIMEOUT_MS + CONNECT_TIMEOUT_MS,
    keepAlive: true,
  };
  return hostsOf(settings).map((host) => ({ ...common, ...host, password: given ?? filedPassword(settings, host) }));
}

/** Asks the file that PGPASSFILE names, or `~/.pgpass`, at each attempt to connect. */
function filedPassword({ PSQL_DBNAME: database, PSQL_USER: user }: Environment, host: Host) {
  return () => new Promise<string>((resolve) => pgpass({ ...host, database, user }, resolve as () => void));
}

function hostsOf({ PSQL_HOST, PSQL_PORT }: Environment): Host[] {
  const hosts = PSQL_HOST.split(",");
  const ports = PSQL_PORT.split(",").map(Number);
  const [first = 0] = ports;
  if (ports.some((port) => port < 1 || port > 65_535)) {
    throw notConfigured(`PSQL_PORT ${JSON.stringify(PSQL_PORT)} must be from 1 to 65535`);
  }
  if (ports.length > 1 && ports.length !== hosts.length) {
    throw notConfigured(
      `PSQL_PORT names ${ports.length} ports for ${hosts.length} hosts; give one, or one for each host`,
    );
  }
  return hosts.map((host, index) => ({ host, port: ports[index] ?? first }));
}

function parseEnvironment(environment: NodeJS.ProcessEnv): Environment {
  const settings = Value.Convert(Environment, Value.Default(Environment, { ...environment })) as Environment;
  const problems = validator.Errors(settings).map((error) => {
    if (error.keyword === "required") return `${error.params.requiredProperties.join(", ")} must be set`;
    const name = error.instancePath.slice(1);
    const allowed = error.keyword === "enum" ? `: ${error.params.allowedValues.join(", ")}` : "";
    return `${name} ${JSON.stringify(environment[name])} ${error.message}${allowed}`;
  });
  const { PSQL_CERT_FILE, PSQL_KEY_FILE } = settings;
  if ((PSQL_CERT_FILE === undefined) !== (PSQL_KEY_FILE === undefined)) {
    problems.push("PSQL_CERT_FILE and PSQL_KEY_FILE must be given together");
  }
  if (problems.length > 0) throw notConfigured(problems.join("; "));
  return settings;
}

/** The variables that a folder has files for, without the line break at their end. */
function filesOf(directory: string | undefined): NodeJS.ProcessEnv {
  if (!directory) return {};
  const names = Object.keys(Environment.properties);
  return Object.fromEntries(
    names.flatMap((name) => {
      const text = readFile(path.join(directory, name), name);
      return text === undefined ? [] : [[name, text.trimEnd()]];
    }),
  );
}

function tlsOptions(settings: Environment, environment: NodeJS.ProcessEnv): ConnectionOptions | false {
  const { PGSSLMODE: mode } = settings;
  if (mode === "disable") return false;
  const ca = fileContent(settings, "PSQL_CA_FILE", environment);
  const cert = fileContent(settings, "PSQL_CERT_FILE", environment);
  const key = fileContent(settings, "PSQL_KEY_FILE", environment);
  const client = { ...(cert !== undefined && { cert }), ...(key !== undefined && { key }) };
  if (mode === "require" && ca === undefined) return { rejectUnauthorized: false, ...client };
  return {
    rejectUnauthorized: true,
    ...(ca !== undefined && { ca }),
    ...client,
    ...(mode !== "verify-full" && { checkServerIdentity: () => undefined }), // it trusts any name
  };
}

/** What the file that a variable names holds; a relative name is looked for in the folder of the variables' files. */
function fileContent(
  settings: Environment,
  name: "PSQL_PASSWORD_FILE" | "PSQL_CA_FILE" | "PSQL_CERT_FILE" | "PSQL_KEY_FILE",
  environment: NodeJS.ProcessEnv,
): string | undefined {
  const file = settings[name];
  if (file === undefined) return undefined;
  const content = readFile(path.resolve(environment[DIRECTORY] ?? "", file), name);
  if (content === undefined) throw notConfigured(`${name} cannot be read: there is no file ${file}`);
  return content;
}

/** @returns `undefined` when there is no such file */
function readFile(file: string, name: string): string | undefined {
  try {
    return fs.readFileSync(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw notConfigured(`${name} cannot be read: ${(error as Error).message}`);
  }
}

function notConfigured(problem: string): TerminalError {
  return new TerminalError("PostgresNotConfigured", `the PostgreSQL connection is not configured: ${problem}`);
}
