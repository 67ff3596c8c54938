import fs from "node:fs";
import type { ConnectionOptions } from "node:tls";
import type { PoolConfig } from "pg";
import Type from "typebox";
import { Compile } from "typebox/compile";
import Value from "typebox/value";
import { TerminalError } from "../errors";

/**
 * The environment variables that say where the database is. Of PGSSLMODE's usual values, `allow` and `prefer` are not
 * supported: they fall back to a connection that is not encrypted, without saying so.
 */
const Environment = Type.Object({
  PSQL_HOST: Type.String({ minLength: 1 }),
  PSQL_PORT: Type.Integer({ minimum: 1, maximum: 65535, default: 5432 }),
  PSQL_DBNAME: Type.String({ minLength: 1 }),
  PSQL_USER: Type.String({ minLength: 1 }),
  PSQL_PASSWORD: Type.String(),
  PSQL_POOL_SIZE: Type.Integer({ minimum: 1, maximum: 1000, default: 10 }),
  /** Seconds without a sign of another cluster after which objects of the same names take its rows; 0: never. */
  KINDSTACK_POSTGRES_TAKEOVER_SECONDS: Type.Integer({ minimum: 0, maximum: 31_536_000, default: 3600 }),
  /** A file of CA certificates in PEM; without it, the CAs that Node.js trusts. */
  PSQL_CA_FILE: Type.Optional(Type.String({ minLength: 1 })),
  /**
   * `require` encrypts and trusts any server, unless there is a CA file (as in PostgreSQL's own clients); `verify-ca`
   * trusts servers with a certificate of the CA; `verify-full` trusts such a server if the certificate names it.
   */
  PGSSLMODE: Type.Enum(["disable", "require", "verify-ca", "verify-full"], { default: "disable" }),
});
type Environment = Type.Static<typeof Environment>;

const validator = Compile(Environment);

/** Running clusters record several heartbeats in this time. */
const SHORTEST_TAKEOVER_SECONDS = 600;
const CONNECT_TIMEOUT_MS = 5_000;
const STATEMENT_TIMEOUT_MS = 15_000;
/** How long an update waits for another session's lock; its other rows wait as well. */
export const LOCK_TIMEOUT_MS = 500;

/**
 * The configuration of the connection pool, from the environment.
 *
 * @throws TerminalError `PostgresNotConfigured` naming the variable and what is allowed, never the password
 */
export function poolConfig(environment: NodeJS.ProcessEnv): PoolConfig {
  const settings = parseEnvironment(environment);
  return {
    host: settings.PSQL_HOST,
    port: settings.PSQL_PORT,
    database: settings.PSQL_DBNAME,
    user: settings.PSQL_USER,
    password: settings.PSQL_PASSWORD,
    max: settings.PSQL_POOL_SIZE,
    ssl: tlsOptions(settings),
    application_name: "kindstack",
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    statement_timeout: STATEMENT_TIMEOUT_MS,
    lock_timeout: LOCK_TIMEOUT_MS,
    // The server's own time-out does not help when the server is what has gone silent.
    query_timeout: STATEMENT_TIMEOUT_MS + CONNECT_TIMEOUT_MS,
    keepAlive: true,
  };
}

/**
 * How long another cluster must not have been seen before its rows are taken over, in seconds; 0 for never.
 *
 * @throws TerminalError `PostgresNotConfigured`
 */
export function takeoverSeconds(): number {
  return parseEnvironment(process.env).KINDSTACK_POSTGRES_TAKEOVER_SECONDS;
}

function parseEnvironment(environment: NodeJS.ProcessEnv): Environment {
  const settings = Value.Convert(Environment, Value.Default(Environment, { ...environment }));
  const problems = validator.Errors(settings).map((error) => {
    if (error.keyword === "required") return `${error.params.requiredProperties.join(", ")} must be set`;
    const name = error.instancePath.slice(1);
    const allowed = error.keyword === "enum" ? `: ${error.params.allowedValues.join(", ")}` : "";
    return `${name} ${JSON.stringify(environment[name])} ${error.message}${allowed}`;
  });
  const { KINDSTACK_POSTGRES_TAKEOVER_SECONDS: takeover } = settings as Environment;
  if (takeover > 0 && takeover < SHORTEST_TAKEOVER_SECONDS) {
    problems.push(`KINDSTACK_POSTGRES_TAKEOVER_SECONDS "${takeover}" must be 0, or >= ${SHORTEST_TAKEOVER_SECONDS}`);
  }
  if (problems.length > 0) throw notConfigured(problems.join("; "));
  return settings as Environment;
}

function tlsOptions({ PGSSLMODE: mode, PSQL_CA_FILE: file }: Environment): ConnectionOptions | false {
  if (mode === "disable") return false;
  const ca = file === undefined ? undefined : readCaFile(file);
  if (mode === "require" && ca === undefined) return { rejectUnauthorized: false };
  return {
    rejectUnauthorized: true,
    ...(ca !== undefined && { ca }),
    ...(mode !== "verify-full" && { checkServerIdentity: () => undefined }),
  };
}

function readCaFile(file: string): string {
  try {
    return fs.readFileSync(file, "utf8");
  } catch (error) {
    throw notConfigured(`PSQL_CA_FILE cannot be read: ${(error as Error).message}`);
  }
}

function notConfigured(problem: string): TerminalError {
  return new TerminalError("PostgresNotConfigured", `the PostgreSQL connection is not configured: ${problem}`);
}
