import { TerminalError } from "../errors";
import { listItems, matchesPattern } from "../pattern";
import { formatTableName, type TableName } from "./identifier";

const VARIABLE = "KINDSTACK_POSTGRES_TABLES";

/** No list opens these: PostgreSQL's own catalogues, and the records of who owns which row. */
const CLOSED_SCHEMAS = ["pg_catalog", "pg_toast", "information_schema", "kindstack_ownership"];

/**
 * Refuses a table that is not on the allow-list `KINDSTACK_POSTGRES_TABLES`: patterns separated by commas, in which `*`
 * matches any characters. `students` and `app_*` mean tables that are found without naming a schema, `public.*` those
 * of a schema. Without the variable every table is allowed; system schemas and Kindstack's own never are.
 *
 * @param table the name as it was written: refused is what no table of the list can be called. With `visible`, the table
 *   that the database has found; `visible` says whether the name alone, without its schema, means it.
 * @throws TerminalError `TableNotAllowed` naming what is allowed
 */
export function refuseTableName(table: TableName & { visible?: boolean }): void {
  const list = process.env[VARIABLE];
  const isAllowed = listItems(list ?? "*.*").some((pattern) => {
    const dot = pattern.indexOf(".");
    if (!matchesPattern(pattern.slice(dot + 1), table.name)) return false;
    if (dot === -1) return table.visible !== false;
    return table.schema === undefined || matchesPattern(pattern.slice(0, dot), table.schema);
  });
  if (isAllowed && !CLOSED_SCHEMAS.includes(table.schema ?? "")) return;
  const allowed = list === undefined ? "every table is allowed" : `${VARIABLE} allows ${list.trim() || "none"}`;
  throw new TerminalError(
    "TableNotAllowed",
    `table ${JSON.stringify(formatTableName(table))} is not allowed: ${allowed}, except those in the schemas ${CLOSED_SCHEMAS.join(", ")}`,
  );
}
