import { pathToFileURL } from "node:url";
import { quoteForShell } from "../text/shell";
import type { Layout } from "./layout";
import type { PostgresSettings } from "./postgres";

/** The environment variables that kubectl, psql, Pulumi and Kindstack need to find the cluster and its operator. @param port of the operator */
export function environmentOf(layout: Layout, postgres: PostgresSettings, port: number): Record<string, string> {
  return {
    KUBECONFIG: layout.kubeconfig,
    PSQL_HOST: postgres.host,
    PSQL_PORT: String(postgres.port),
    PSQL_DBNAME: postgres.database,
    PSQL_USER: postgres.user,
    PSQL_PASSWORD: postgres.password,
    // The names that PostgreSQL's own programs read, so that plain psql works.
    PGHOST: postgres.host,
    PGPORT: String(postgres.port),
    PGDATABASE: postgres.database,
    PGUSER: postgres.user,
    PGPASSWORD: postgres.password,
    PULUMI_BACKEND_URL: pathToFileURL(layout.state).href,
    PULUMI_CONFIG_PASSPHRASE_FILE: layout.passphrase,
    KINDSTACK_WORK_DIR: layout.work,
    KINDSTACK_METRICS_URL: `http://127.0.0.1:${port}/metrics`,
  };
}

/** A file for a POSIX shell's `.` that exports the variables. */
export function environmentFile(environment: Readonly<Record<string, string>>): string {
  return Object.entries(environment)
    .map(([name, value]) => `export ${name}=${quoteForShell(value)}\n`)
    .join("");
}
