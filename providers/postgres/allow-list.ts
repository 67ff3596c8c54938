import { TerminalError } from "../errors";
import { listItems, matchesPattern } from "../pattern";
import { formatTableName, type TableName } from "./identifier";

const VARIABLE = "KINDSTACK_POSTGRES_TABLES";

/** No list opens these: PostgreSQL's own catalogues, and the books of who owns which row. */
const CLOSED_SCHEMAS = new Set(["pg_catalog", "pg_toast", "information_schema", "kindstack_ownership"]);

/** A table as the database knows it. */
export interface ResolvedTable {
  schema: string;
  name: string;
  /** Whether the name alone, without its schema, means this table. */
  visible: boolean;
}

/**
 * Refuses a name that no table of the allow-list can have, before anything is asked of the database. What passes is
 * asked again as {@link refuseTable}, when the database has said which table the name means.
 *
 * @throws TerminalError `TableNotAllowed` naming what is allowed
 */
export function refuseTableName(table: TableName, environment: NodeJS.ProcessEnv = process.env): void {
  const isClosed = table.schema !== undefined && CLOSED_SCHEMAS.has(table.schema);
  const isAllowed = patternsOf(environment).some(
    (pattern) =>
      matchesPattern(pattern.name, table.name) &&
      (pattern.schema === undefined || table.schema === undefined || matchesPattern(pattern.schema, table.schema)),
  );
  if (isClosed || !isAllowed) throw notAllowed(table, environment);
}

/**
 * Refuses a table that is not on the allow-list `KINDSTACK_POSTGRES_TABLES`: patterns separated by commas, in which `*`
 * matches any characters. `students` and `app_*` mean tables that are found without naming a schema, `public.*` those
 * of a schema. Without the variable every table is allowed; system schemas and Kindstack's own never are.
 *
 * @throws TerminalError `TableNotAllowed` naming what is allowed
 */
export function refuseTable(table: ResolvedTable, environment: NodeJS.ProcessEnv = process.env): void {
  const isAllowed = patternsOf(environment).some(
    (pattern) =>
      matchesPattern(pattern.name, table.name) &&
      (pattern.schema === undefined ? table.visible : matchesPattern(pattern.schema, table.schema)),
  );
  if (CLOSED_SCHEMAS.has(table.schema) || !isAllowed) throw notAllowed(table, environment);
}

function patternsOf(environment: NodeJS.ProcessEnv): TableName[] {
  return listItems(environment[VARIABLE] ?? "*.*").map((pattern) => {
    const dot = pattern.indexOf(".");
    return dot === -1 ? { name: pattern } : { schema: pattern.slice(0, dot), name: pattern.slice(dot + 1) };
  });
}

function notAllowed(table: TableName, environment: NodeJS.ProcessEnv): TerminalError {
  const list = environment[VARIABLE];
  const closed = [...CLOSED_SCHEMAS].join(", ");
  return new TerminalError(
    "TableNotAllowed",
    `table ${JSON.stringify(formatTableName(table))} must not be written: ${
      list === undefined ? "allowed is every table" : `${VARIABLE} allows ${list.trim() || "none"}`
    }, except in the schemas ${closed}`,
  );
}
