import { randomBytes } from "node:crypto";
import { Client } from "pg";
import { beforeAll, vi } from "vitest";
import { closePool } from "../../../providers/postgres/pool";
import type { RowInputs } from "../../../providers/postgres/row-inputs";
import { controlPlane } from "../../control-plane";

/** The records of who owns which row, with the names of their tables. */
export const RECORDS = "kindstack_ownership.records JOIN kindstack_ownership.tables ON tables.id = table_id";

/** The columns of the source document's table. */
export const STUDENTS = "id text PRIMARY KEY, name text, age integer, country text";

/** Variables that a test may have set and the next one must not see. */
const OPTIONAL = [
  ...["KINDSTACK_POSTGRES_TABLES", "PGSSLMODE", "PGPASSFILE"],
  ...["PSQL_DIRECTORY", "PSQL_PASSWORD_FILE", "PSQL_CA_FILE", "PSQL_CERT_FILE", "PSQL_KEY_FILE"],
];

/** The rights of an operator to the records, once there are records. */
export const RECORDS_RIGHTS = `GRANT USAGE ON SCHEMA kindstack_ownership TO %;
  GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA kindstack_ownership TO %;`;

/** A database of its own for the tests of one file, made before the first and removed after the hooks of the last. */
export function useDatabase(): TestDatabase {
  const database = new TestDatabase(controlPlane().env);
  beforeAll(async () => {
    await database.open();
    return () => database.close();
  });
  return database;
}

/** A database for one test file, so that no other file's rows and records are in it. */
export class TestDatabase {
  readonly name = `test_${randomBytes(6).toString("hex")}`;
  readonly #environment: Record<string, string>;
  #client: Client;
  #idle: Promise<unknown> = Promise.resolve();
  readonly #roles: string[] = [];

  constructor(environment: Record<string, string>) {
    this.#environment = environment;
    this.#client = this.#connectTo(environment.PSQL_DBNAME ?? "postgres");
  }

  /** Creates the database and makes it the one that the providers use. */
  async open(): Promise<void> {
    await this.#client.connect();
    await this.#client.query(`CREATE DATABASE ${this.name}`);
    await this.#client.end();
    this.#client = this.#connectTo(this.name);
    await this.#client.connect();
    this.use();
  }

  /** Points the providers at this database, with these variables changed. */
  use(changes: Record<string, string | undefined> = {}): void {
    for (const name of OPTIONAL) vi.stubEnv(name, undefined);
    for (const [name, value] of Object.entries({ ...this.#environment, PSQL_DBNAME: this.name, ...changes })) {
      vi.stubEnv(name, value);
    }
  }

  /** Points the providers at this database as a role that `createRole` has made, on connections of its own. */
  async useAs(role: string): Promise<void> {
    await closePool();
    this.use({ PSQL_USER: role, PSQL_PASSWORD: "x" });
  }

  /** The URL of a backend that keeps Pulumi's state in this database, with some of it changed. */
  backendUrl(changes: { user?: string; password?: string; port?: string; database?: string } = {}): string {
    const { PSQL_HOST, PSQL_PORT, PSQL_USER, PSQL_PASSWORD = "" } = this.#environment;
    const { user = PSQL_USER, password = PSQL_PASSWORD, port = PSQL_PORT, database = this.name } = changes;
    const login = `${user}:${encodeURIComponent(password)}`;
    return `postgres://${login}@${PSQL_HOST}:${port}/${database}?sslmode=disable`;
  }

  /** One after the other, also for tests that run at the same time: they share a connection. */
  async query<T = Record<string, unknown>>(text: string, values: unknown[] = []): Promise<T[]> {
    const result = this.#idle.then(() => this.#client.query(text, values));
    this.#idle = result.catch(() => undefined);
    return (await result).rows as T[];
  }

  /** Another connection, for what lasts longer than a statement. */
  async connect(): Promise<Client> {
    const client = this.#connectTo(this.name);
    await client.connect();
    return client;
  }

  /** A table of its own for a test, as the source document has it. */
  async createStudents(columns = STUDENTS): Promise<string> {
    const table = `students_${randomBytes(6).toString("hex")}`;
    await this.query(`CREATE TABLE ${table} (${columns})`);
    return table;
  }

  /** The rows of a table, by their keys. */
  rowsOf(table: string): Promise<Record<string, unknown>[]> {
    return this.query(`SELECT * FROM ${table} ORDER BY 1`);
  }

  /** The records of a table's rows. */
  recordsOf(table: string): Promise<Record<string, unknown>[]> {
    return this.query(`SELECT records.* FROM ${RECORDS} WHERE table_name = $1 ORDER BY key`, [table]);
  }

  /** Makes a trigger for each row of a table. @param trigger the statement, without what it executes */
  async createTrigger(trigger: string, body: string): Promise<void> {
    const name = `f_${randomBytes(6).toString("hex")}`;
    await this.query(`CREATE FUNCTION ${name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${body} END $$;
      ${trigger} FOR EACH ROW EXECUTE FUNCTION ${name}()`);
  }

  /** Makes a role that may log in with the password `x`, and has these rights; it is removed with the database. */
  async createRole(purpose: string, rights = ""): Promise<string> {
    const role = `${this.name}_${purpose}`;
    this.#roles.push(role);
    await this.query(`CREATE ROLE ${role} LOGIN PASSWORD 'x'; ${rights.replaceAll("%", role)}`);
    return role;
  }

  /** Loses the records of a table's rows, as a restore without them does. */
  async forgetRecords(...tables: string[]): Promise<void> {
    await this.query(
      `DELETE FROM kindstack_ownership.records
       WHERE table_id IN (SELECT id FROM kindstack_ownership.tables WHERE table_name = ANY($1))`,
      [tables],
    );
  }

  async close(): Promise<void> {
    await closePool();
    await this.#client.end();
    vi.unstubAllEnvs();
    const client = this.#connectTo(this.#environment.PSQL_DBNAME ?? "postgres");
    await client.connect();
    await client.query(`DROP DATABASE ${this.name} WITH (FORCE)`);
    for (const role of this.#roles) await client.query(`DROP ROLE ${role}`);
    await client.end();
  }

  #connectTo(database: string): Client {
    const { PSQL_HOST: host, PSQL_PORT: port, PSQL_USER: user, PSQL_PASSWORD: password } = this.#environment;
    return new Client({ host: host ?? "", port: Number(port), user: user ?? "", password: password ?? "", database });
  }
}

/** The inputs of a row, those of the source document where a test does not say otherwise. */
export function rowIn(table: string, changes: Partial<RowInputs> = {}): RowInputs {
  return {
    table,
    key: { id: "default/sample-student" },
    values: { name: "alex", age: 23, country: "canada" },
    owner: { uid: "uid-1", description: "PostgresWriter.demo.yash.com/default/sample-student" },
    ...changes,
  };
}
