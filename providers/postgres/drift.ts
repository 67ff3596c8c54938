import type { ClassifiedError } from "../errors";
import { columnsOf, compareRows, isUnreadable, type WantedRow as RowValues } from "./comparison";
import { isRefusedStatement, sqlStateOf } from "./errors";
import { parseTableName } from "./identifier";
import { findUnrecorded } from "./ownership";
import { tablesOf } from "./placement";
import { type Connection, withReadTransaction } from "./pool";
import { hasRecords } from "./records";
import type { RowInputs } from "./row-inputs";
import { withTable } from "./table-lock";
import { findTable, type Table } from "./tables";

/** A row as it should be, and whose it is. */
export interface WantedRow extends RowValues, Pick<RowInputs, "table"> {
  uid: string;
}

const ROWS_PER_QUERY = 5_000;

/**
 * Compares rows with what they should be, with few queries for the rows of one table. Values are compared by the database,
 * in the columns' types. A table that cannot be compared does not prevent the comparison of the others.
 *
 * @returns the UIDs of the rows that are missing, have other values or are not recorded for their owner, and why rows could
 *   not be compared, by UID
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

/** What cannot be compared because a table, a column or a value is none any more has drifted: the update that follows tells. */
async function compare(alike: readonly WantedRow[]): Promise<string[]> {
  const [first] = alike as [WantedRow];
  const all = alike.map(({ uid }) => uid);
  try {
    return await withTable(parseTableName(first.table, "table"), withReadTransaction, async (connection) => {
      if (!(await hasRecords(connection))) return all;
      let drifted = new Set(alike.keys());
      for (const table of await tablesFor(connection, alike)) {
        const there = await differentIn(connection, table, alike);
        drifted = new Set([...drifted].filter((index) => there.has(index)));
      }
      return [...drifted].flatMap((index) => all[index] ?? []);
    });
  } catch (error) {
    if (isUnreadable(sqlStateOf(error))) return all;
    throw error;
  }
}

/** The table that the name means, or else those that the rows are in, which were renamed. */
async function tablesFor(connection: Connection, alike: readonly WantedRow[]): Promise<Table[]> {
  const [first] = alike as [WantedRow];
  const columns = columnsOf(first);
  const named = await findTable(connection, parseTableName(first.table, "table"), columns);
  if (named !== undefined) return [named];
  const owners = alike.map(({ uid }) => uid);
  const held: Table[] = [];
  for (const oid of await tablesOf(connection, owners)) {
    const table = await findTable(connection, { oid }, columns);
    if (table !== undefined) held.push(table);
  }
  return held;
}

/** The indexes of rows that a table does not have as they should be. */
async function differentIn(
  connection: Connection,
  table: Table,
  alike: readonly WantedRow[],
): Promise<ReadonlySet<number>> {
  const [first] = alike as [WantedRow];
  if (columnsOf(first).some((name) => table.columns[name] === undefined)) return new Set(alike.keys());
  const different = await compareRows(connection, table, alike);
  return new Set([...different.map(({ index }) => index), ...(await findUnrecorded(connection, table, alike))]);
}
