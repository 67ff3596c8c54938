import { sqlStateOf } from "../../providers/postgres/errors";
import { controlPlane } from "../control-plane";
import type { TestOperator } from "../e2e/operator";
import { readIfThere } from "../files";
import { TestDatabase } from "../providers/postgres/database";
import { PostgresProxy } from "./postgres-proxy";
import { StateWatch } from "./state-watch";

/** One file of a backend, wherever it keeps its files. */
export interface StateFile {
  /** Its path, or what names it. */
  name: string;
  text: string;
}

/** Where an operator under test keeps its state. */
export interface StateStore {
  /** What the operator has to know of it. */
  readonly env: Record<string, string>;
  /** The files with this in their names. */
  files(part: string): Promise<StateFile[]>;
  /** @param tell told of each write, before anything that follows from it; after `false` anyone who wrote is cut off */
  watch(tell: () => boolean): void;
  close(): Promise<void>;
}

/** The folder that every operator of a test has. */
export function folderStore(operator: TestOperator): StateStore {
  let watch: StateWatch | undefined;
  return {
    env: {},
    files: async (part) =>
      operator.stateFiles(part).flatMap((name) => {
        const text = readIfThere(name);
        return text === undefined ? [] : [{ name, text }];
      }),
    watch: (tell) => {
      watch = new StateWatch(operator.stateDirectory, tell);
    },
    close: async () => watch?.close(),
  };
}

/** A database of its own, behind a proxy. What is told of is every statement of the CLI: it begins with a few that read. */
export async function databaseStore(): Promise<StateStore> {
  const { env } = controlPlane();
  const database = new TestDatabase(env);
  await database.open();
  const proxy = await PostgresProxy.start({ host: env.PSQL_HOST ?? "", port: Number(env.PSQL_PORT) });
  return {
    env: { PULUMI_BACKEND_URL: `${database.backendUrl({ port: String(proxy.port) })}&table=state` },
    files: (part) =>
      database
        .query<StateFile>(
          `SELECT key AS name, convert_from(decode(data->>'data', 'base64'), 'utf8') AS text
           FROM state WHERE position($1 in key) > 0 ORDER BY key`,
          [part],
        )
        .catch(noneWithoutTable),
    watch: (tell) => {
      proxy.faults.answered = tell;
    },
    async close() {
      proxy.close();
      await database.close();
    },
  };
}

/** The first who writes makes the table. @throws every other error */
export function noneWithoutTable(error: unknown): [] {
  if (sqlStateOf(error) === "42P01") return [];
  throw error;
}
