import { escapeIdentifier, type QueryResult } from "pg";
import type { ClassifiedError } from "../errors";
import { isRefusedStatement, sqlStateOf } from "./errors";
import { parseTableName, quoteTableName } from "./identifier";
import { withReadTransaction } from "./pool";
import { keyOf, type RowInputs } from "./row-inputs";
import { withTable } from "./table-lock";

/** A row as it should be, and whose it is. */
export interface WantedRow extends Pick<RowInputs, "table" | "key" | "values"> {
  uid: string;
}

const ROWS_PER_QUERY = 5_000;

/** With a table or a column, its rows are gone; the update that follows reports what is missing. */
const GONE_STATES = new Set(["42P01", "42703", "3F000"]);

/**
 * Compares rows with what they should be, with one query for the rows of one table. Values are compared by the database,
 * in the columns' types. A table that cannot be compared does not prevent the comparison of the others.
 *
 * @returns the UIDs of the rows that are missing or have other values, and why rows could not be compared, by UID
 * @throws ClassifiedError when the database cannot be asked
 */
export async function findDriftedRows(
  rows: readonly WantedRow[],
): Promise<{ drifted: string[]; unknown: Map<string, ClassifiedError> }> {
  const drifted: string[] = [];
  const unknown = new Map<string, ClassifiedError>();
  for (const alike of groupByColumns(rows)) {
    try {
      for (let start = 0; start < alike.length; start += ROWS_PER_QUERY) {
        drifted.push(...(await compare(alike.slice(start, start + ROWS_PER_QUERY))));
      }
    } catch (error) {
      if (!isRefusedStatement(error)) throw error;
      for (const { uid } of alike) unknown.set(uid, error);
    }
  }
  return { drifted, unknown };
}

/** Rows that one query can compare: of one table, with the same columns. */
function groupByColumns(rows: readonly WantedRow[]): WantedRow[][] {
  const groups = new Map<string, WantedRow[]>();
  for (const row of rows) {
    const columns = JSON.stringify([row.table, Object.keys(row.key), Object.keys(row.values).sort()]);
    const group = groups.get(columns) ?? [];
    group.push(row);
    groups.set(columns, group);
  }
  return [...groups.values()];
}

/**
 * Only the database knows the columns' types: it reads each wanted row as a row of the table. The sub-query is the NULL
 * that names its type; a cast to the table's name could mean another type of that name, as in a table `point`.
 */
async function compare(alike: readonly WantedRow[]): Promise<string[]> {
  const [first] = alike as [WantedRow];
  const name = parseTableName(first.table, "table");
  const table = quoteTableName(name);
  const key = escapeIdentifier(keyOf(first).column);
  const columns = Object.keys(first.values).map(escapeIdentifier);
  const isDistinct = columns.map((column) => `live.${column} IS DISTINCT FROM wanted.${column}`);
  const query = `
    SELECT given.position
    FROM jsonb_array_elements($1::jsonb) WITH ORDINALITY AS given (fields, position)
    CROSS JOIN LATERAL jsonb_populate_record((SELECT "no row" FROM ${table} AS "no row" LIMIT 0), given.fields) AS wanted
    LEFT JOIN ${table} AS live ON live.${key} = wanted.${key}
    WHERE ${[`live.${key} IS NULL`, ...isDistinct].join(" OR ")}`;
  const wanted = JSON.stringify(alike.map((row) => ({ ...row.values, ...row.key })));
  try {
    const { rows } = await withTable(name, withReadTransaction<QueryResult<{ position: string }>>, (connection) =>
      connection.query(query, [wanted]),
    );
    return rows.flatMap(({ position }) => alike[Number(position) - 1]?.uid ?? []);
  } catch (error) {
    if (GONE_STATES.has(sqlStateOf(error) ?? "")) return alike.map(({ uid }) => uid);
    throw error;
  }
}
