import { escapeIdentifier } from "pg";
import { TerminalError } from "../errors";
import { listItems } from "../list-items";
import { matchesPattern } from "../pattern";

/** A table as the user wrote it; without a schema, PostgreSQL looks along the connection's `search_path`. */
export interface TableName {
  schema?: string;
  name: string;
}

/** A table as the database names it. */
export type TableLocation = Required<TableName>;

/** PostgreSQL cuts longer names off without an error, and would then mean another table. */
const MAX_IDENTIFIER_BYTES = 63;

/** What a database can neither store in a text nor find again: NUL, and half of a UTF-16 surrogate pair. */
const UNSTORABLE = /[\0\p{Surrogate}]/u;

export function isStorableText(text: string): boolean {
  return !UNSTORABLE.test(text);
}

/** Why `part` cannot be the name of a schema, a table or a column; `undefined` when it can. */
export function identifierProblem(part: string): string | undefined {
  if (part === "") return "a name must not be empty";
  if (!isStorableText(part)) return "a name must not contain NUL or unpaired surrogates";
  const bytes = Buffer.byteLength(part);
  if (bytes > MAX_IDENTIFIER_BYTES) return `a name has at most ${MAX_IDENTIFIER_BYTES} bytes, this one has ${bytes}`;
  return undefined;
}

/**
 * Parses `table` or `schema.table`. Names are taken literally, as if they were quoted: their case matters, any
 * character but a dot may be in them.
 *
 * @param field where the text stands, for the error
 * @throws TerminalError `InvalidTable` naming the field, its value and what is allowed
 */
export function parseTableName(text: string, field: string): TableName {
  const parts = text.split(".");
  const problem = parts.length > 2 ? "there is more than one dot" : parts.map(identifierProblem).find(Boolean);
  if (problem !== undefined) {
    throw new TerminalError(
      "InvalidTable",
      `${field}: ${JSON.stringify(text.slice(0, 200))} is not the name of a table: ${problem}; allowed is "table" or "schema.table"`,
    );
  }
  const [first = "", second] = parts;
  return second === undefined ? { name: first } : { schema: first, name: second };
}

/** A table's name, ready to stand in a statement: `"public"."students"`. */
export function quoteTableName({ schema, name }: TableName): string {
  return schema === undefined ? escapeIdentifier(name) : `${escapeIdentifier(schema)}.${escapeIdentifier(name)}`;
}

/** A table's name for people: `public.students`. */
export function formatTableName({ schema, name }: TableName): string {
  return schema === undefined ? name : `${schema}.${name}`;
}

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
