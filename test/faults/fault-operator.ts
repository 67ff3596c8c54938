import { randomBytes } from "node:crypto";
import { Client } from "pg";
import { afterAll, afterEach, beforeAll } from "vitest";
import { controlPlane } from "../control-plane";
import { removeAllObjects } from "../e2e/objects";
import { type RunSettings, TestOperator } from "../e2e/operator";
import { TestDatabase } from "../providers/postgres/database";
import { ApiProxy } from "./api-proxy";
import { PostgresProxy } from "./postgres-proxy";

/** An operator with a database of its own, to which, as to the API server, only proxies lead. */
export class FaultOperator {
  readonly operator: TestOperator;
  readonly database = new TestDatabase(controlPlane().env);
  /** As whom the operator connects: the database's owner, whom, unlike a superuser, the server can restrict. */
  readonly role = `role_${randomBytes(6).toString("hex")}`;
  api!: ApiProxy;
  postgres!: PostgresProxy;
  readonly #password = randomBytes(12).toString("hex");

  constructor(settings: RunSettings = {}) {
    this.operator = new TestOperator(settings);
  }

  async open(): Promise<void> {
    const { env, kubeconfig } = controlPlane();
    await this.database.open();
    await this.database.query(`CREATE ROLE ${this.role} LOGIN PASSWORD '${this.#password}'`);
    await this.database.query(`ALTER DATABASE ${this.database.name} OWNER TO ${this.role}`);
    this.api = await ApiProxy.start(kubeconfig);
    this.postgres = await PostgresProxy.start({ host: env.PSQL_HOST ?? "", port: Number(env.PSQL_PORT) });
  }

  /** Starts it again, where it was stopped. */
  start(): Promise<void> {
    return this.operator.start({
      env: {
        KUBECONFIG: this.api.writeKubeconfig(this.operator.directory),
        PSQL_PORT: String(this.postgres.port),
        PSQL_DBNAME: this.database.name,
        PSQL_USER: this.role,
        PSQL_PASSWORD: this.#password,
      },
    });
  }

  /** A table for rows of PostgresWriters, which the operator may write. */
  async createTable(): Promise<string> {
    const table = await this.database.createStudents();
    await this.database.query(`ALTER TABLE ${table} OWNER TO ${this.role}`);
    return table;
  }

  /** Ends the operator's sessions, so that the next ones begin as its role is set by now. */
  async endSessions(): Promise<void> {
    await this.database.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1", [this.role]);
  }

  async close(): Promise<void> {
    this.api.faults = {};
    this.postgres.faults = {};
    await removeAllObjects();
    await this.operator.dispose();
    this.api.close();
    this.postgres.close();
    await this.database.close();
    await dropRole(this.role);
  }
}

/** One for the tests of one file, which finds all well at the beginning of each. */
export function useFaultOperator(settings: RunSettings = {}): FaultOperator {
  const faulty = new FaultOperator(settings);
  beforeAll(async () => {
    await faulty.open();
    await faulty.start();
  });
  afterEach(({ task }) => {
    faulty.api.faults = {};
    faulty.postgres.faults = {};
    const log = faulty.operator.takeLog();
    if (task.result?.state === "fail") console.log(`The operator's log during "${task.name}":\n${log}`);
  });
  afterAll(() => faulty.close());
  return faulty;
}

async function dropRole(role: string): Promise<void> {
  const { PSQL_HOST, PSQL_PORT, PSQL_USER, PSQL_PASSWORD, PSQL_DBNAME } = controlPlane().env;
  const client = new Client({
    host: PSQL_HOST ?? "",
    port: Number(PSQL_PORT),
    user: PSQL_USER ?? "",
    password: PSQL_PASSWORD ?? "",
    database: PSQL_DBNAME ?? "",
  });
  await client.connect();
  await client.query(`DROP ROLE ${role}`);
  await client.end();
}
