import { escapeIdentifier } from "pg";
import { TerminalError } from "../errors";
import { shortened } from "../shortened";
import { quoteTableName } from "./identifier";
import { type ColumnValue, keyOf, type RowInputs } from "./row-inputs";
import type { Column, Table } from "./tables";

export type RowValues = Pick<RowInputs, "key" | "values">;

export interface Difference {
  /** The row's place among those that were compared. */
  index: number;
  /** The live values of the columns that differ, as text; `undefined` when there is no such row. */
  live: LiveColumns | undefined;
}

/** Values of columns as text, by their names. */
export type LiveColumns = Record<string, string | null>;

export function columnsOf(row: RowValues): string[] {
  return [keyOf(row).column, ...Object.keys(row.values)];
}

/**
 * Compares rows with what is in their table. The database compares: each value is read as the column's type, and is equal
 * where the type says so (23 is equal to a numeric's 23.00), or has the same text where the type has no equality.
 *
 * @param rows of the same columns
 * @throws ClassifiedError also for a value that the column's type has no notion of
 */
export async function compareRows(table: Table, rows: readonly RowValues[]): Promise<Difference[]> {
  const [first] = rows;
  if (first === undefined) return [];
  const names = Object.keys(first.values);
  const key = keyOf(first).column;
  const wanted = (name: string, given: string) => `${given}::${table.columns[name]?.type ?? "text"}`;
  const differs = names.map((name, index) => {
    const [live, should] = [`live.${escapeIdentifier(name)}`, wanted(name, `given.c${index}`)];
    return table.columns[name]?.hasEquality
      ? `${live} IS DISTINCT FROM ${should}`
      : `${live}::text IS DISTINCT FROM (${should})::text`;
  });
  const liveKey = `live.${escapeIdentifier(key)}`;
  const changed = names.map(
    (name, index) => `CASE WHEN ${differs[index]} THEN ARRAY[live.${escapeIdentifier(name)}::text] END AS "${index}"`,
  );
  const parameters = ["key", ...names].map((_, index) => `$${index + 1}::text[]`);
  const { rows: found } = await table.connection.query<{
    position: string;
    is_missing: boolean;
    [column: number]: [string | null] | null;
  }>(
    `SELECT ${["given.position", `${liveKey} IS NULL AS is_missing`, ...changed].join(", ")}
     FROM unnest(${parameters.join(", ")}) WITH ORDINALITY
       AS given(${["key", ...names.map((_, index) => `c${index}`), "position"].join(", ")})
     LEFT JOIN ${quoteTableName(table)} AS live ON ${liveKey} = ${wanted(key, "given.key")}
     WHERE ${[`${liveKey} IS NULL`, ...differs].join(" OR ")}`,
    [rows.map((row) => keyOf(row).value), ...names.map((name) => rows.map(({ values }) => textOf(values[name])))],
  );
  return found.map((row) => ({
    index: Number(row.position) - 1,
    live: row.is_missing
      ? undefined
      : Object.fromEntries(
          names.flatMap((name, index) => {
            const live = row[index];
            return live ? [[name, live[0]] as const] : [];
          }),
        ),
  }));
}

function textOf(value: ColumnValue | undefined): string | null {
  return value === null || value === undefined ? null : String(value);
}

/** SQLSTATEs of a value that a column's type, or its domain, has no notion of. */
const UNREADABLE = /^(22|23502|23514|42601|42846|42883)/;

/** Whether a comparison failed because a value does not fit its column's type: such a value differs from the stored one. */
export function isUnreadable(sqlState: string | undefined): boolean {
  return sqlState !== undefined && UNREADABLE.test(sqlState);
}

/** Of a value in a message. */
const MAX_SHOWN = 100;
const UNSTABLE = /\b(now|today|tomorrow|yesterday)\b/i;

/** @throws TerminalError `ValueNotStable` for a value that means another one each time it is compared */
export function refuseUnstableValues({ columns }: Table, { values }: RowValues): void {
  for (const [name, value] of Object.entries(values)) {
    if (!columns[name]?.isTemporal || typeof value !== "string" || !UNSTABLE.test(value)) continue;
    throw new TerminalError(
      "ValueNotStable",
      `column ${JSON.stringify(name)}: as ${(columns[name] as Column).declared}, ${JSON.stringify(shortened(value, MAX_SHOWN))} ` +
        "is another value each time; write the date or time itself",
    );
  }
}

export function describeDifference(row: RowValues, { live }: Difference): string {
  if (live === undefined) return `row ${JSON.stringify(keyOf(row).value)} was missing`;
  const describe = (name: string, is: string, wanted: string) => `${name} was ${is} in place of ${wanted}`;
  return describeColumns(row, live, describe).join(", ");
}

/** What the database made of the values, for people. */
export function describeRewritten({ columns }: Table, row: RowValues, live: LiveColumns): string {
  const describe = (column: string, is: string, wanted: string, name: string) =>
    `${column} (${columns[name]?.declared}): the database makes ${is} of ${wanted}`;
  return describeColumns(row, live, describe).join("; ");
}

function describeColumns(
  { values }: RowValues,
  live: LiveColumns,
  describe: (column: string, is: string, wanted: string, name: string) => string,
): string[] {
  return Object.entries(live).map(([name, value]) =>
    describe(`column ${JSON.stringify(name)}`, shown(value), shown(textOf(values[name])), name),
  );
}

function shown(text: string | null): string {
  return text === null ? "NULL" : JSON.stringify(shortened(text, MAX_SHOWN));
}
