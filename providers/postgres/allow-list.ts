import { TerminalError } from "../errors";
import { listItems } from "../list-items";
import { matchesPattern } from "../pattern";
import { formatTableName, type TableName } from "./identifier";

const VARIABLE = "KINDSTACK_POSTGRES_TABLES";

/** No list opens these: PostgreSQL's own catalogues, and the records of who owns which row. */
const CLOSED_SCHEMAS = ["pg_catalog", "pg_toast", "information_schema", "kindstack_ownership"];

/**
 * Refuses a table that is not on the allow-list `KINDSTACK_POSTGRES_TABLES`: patterns separated by commas, in which `*`
 * matches any characters. `students` and `app_*` mean tables that are found without naming a schema, `public.*` those
 * of a schema. `team-a=app.*` means them for objects of the namespace `team-a` alone. Without the variable every table is
 * allowed; system schemas and Kindstack's own never are.
 *
 * @param table the name as it was written: refused is what no table of the list can be called. With `visible`, the table
 *   that the database has found; `visible` says whether the name alone, without its schema, means it.
 * @param namespace of the object; entries with a namespace do not concern a row without one
 * @throws TerminalError `TableNotAllowed` naming what is allowed
 */
export function refuseTableName(table: TableName & { visible?: boolean }, namespace?: string): void {
  const list = process.env[VARIABLE];
  const patterns = listItems(list ?? "*.*").flatMap((item) => {
    const [first = "", pattern] = splitAt(item, "=");
    if (pattern === undefined) return [first];
    return namespace !== undefined && matchesPattern(first, namespace) ? [pattern] : [];
  });
  const isAllowed = patterns.some((pattern) => {
    const [first = "", name] = splitAt(pattern, ".");
    if (name === undefined) return matchesPattern(first, table.name) && table.visible !== false;
    if (!matchesPattern(name, table.name)) return false;
    return table.schema === undefined || matchesPattern(first, table.schema);
  });
  if (isAllowed && !CLOSED_SCHEMAS.includes(table.schema ?? "")) return;
  const where = namespace === undefined ? "" : ` in the namespace ${namespace}`;
  const allowed =
    list === undefined ? "every table is allowed" : `${VARIABLE} allows ${patterns.join(",") || "none"}${where}`;
  throw new TerminalError(
    "TableNotAllowed",
    `table ${JSON.stringify(formatTableName(table))} is not allowed: ${allowed}, except those in the schemas ${CLOSED_SCHEMAS.join(", ")}`,
  );
}

/** The texts before and after the first separator; only one where there is none. */
function splitAt(text: string, separator: string): string[] {
  const at = text.indexOf(separator);
  return at === -1 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}
