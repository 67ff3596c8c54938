import { escapeIdentifier } from "pg";
import { TerminalError } from "../errors";

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
