import { type ClassifiedError, errorMessageOf } from "../errors";
import {
  columnsOf,
  compareRows,
  type Difference,
  describeDifference,
  isUnreadable,
  type RowValues,
} from "./comparison";
import { isRefusedStatement, sqlStateOf } from "./errors";
import { formatTableName, parseTableName } from "./identifier";
import { findUnrecorded } from "./ownership";
import { describeReplaced, replacedAmong, tablesOf } from "./placement";
import { type Connection, withReadTransaction } from "./pool";
import { absenceUnknown } from "./row-absence";
import type { RowInputs } from "./row-inputs";
import { hasRecords, withTable } from "./table-lock";
import { findTable, type Table } from "./tables";

export interface WantedRow extends RowValues, Pick<RowInputs, "table"> {
  uid: string;
}

const ROWS_PER_QUERY = 5_000;

/**
 * Compares rows with what they should be, with few queries for the rows of one table. Values are compared by the database,
 * in the columns' types. A table that cannot be compared does not prevent the comparison of the others.
 *
 * @returns by UID, what is wrong with rows that are missing, have other values or have no record of their owner. For
 *   those that could not be compared, why
 * @throws ClassifiedError when the database cannot be asked
 */
export async function findDriftedRows(
  rows: readonly WantedRow[],
): Promise<{ drifted: Map<string, string>; unknown: Map<string, ClassifiedError> }> {
  const drifted = new Map<string, string>();
  const unknown = new Map<string, ClassifiedError>();
  for (const alike of groupByColumns(rows)) {
    try {
      for (let start = 0; start < alike.length; start += ROWS_PER_QUERY) {
        const some = alike.slice(start, start + ROWS_PER_QUERY);
        for (const [index, problem] of await compare(some)) {
          const { uid } = some[index] as WantedRow;
          if (typeof problem === "string") drifted.set(uid, problem);
          else unknown.set(uid, problem);
        }
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
  const columnsIn = ({ table, key, values }: WantedRow) =>
    JSON.stringify([table, Object.keys(key), Object.keys(values).sort()]);
  return [...Map.groupBy(rows, columnsIn).values()];
}

/** What is not as it should be, for people, or why that cannot be told, by the row's index. */
type Problems = ReadonlyMap<number, string | ClassifiedError>;

/** What cannot be compared because a table, a column or a value is none any more has drifted: the update that follows tells. */
async function compare(alike: readonly WantedRow[]): Promise<Problems> {
  const [first] = alike as [WantedRow];
  const all = (problem: string): Problems => new Map(alike.map((_, index) => [index, problem]));
  try {
    return await withTable(parseTableName(first.table, "table"), withReadTransaction, async (connection) => {
      if (!(await hasRecords(connection))) return differentWithoutRecords(connection, alike);
      let problems = all(`table ${first.table} did not exist`);
      for (const table of await tablesFor(connection, alike)) {
        const there = await differentIn(table, alike);
        problems = new Map([...there].filter(([index]) => problems.has(index)));
      }
      return problems;
    });
  } catch (error) {
    if (isUnreadable(sqlStateOf(error))) return all(errorMessageOf(error));
    throw error;
  }
}

/** In a database without records, rows that are there have to be recorded; nothing is known of those that are not. */
async function differentWithoutRecords(connection: Connection, alike: readonly WantedRow[]): Promise<Problems> {
  const [first] = alike as [WantedRow];
  const unknown = await absenceUnknown(connection); // first: no statement follows one that failed
  const table = await findTable(connection, parseTableName(first.table, "table"), columnsOf(first));
  const isComparable = table !== undefined && columnsOf(first).every((name) => table.columns[name] !== undefined);
  const different = isComparable ? await compareReadable(table, alike) : undefined;
  const missing = different && new Set(different.flatMap(({ index, live }) => (live === undefined ? [index] : [])));
  return new Map(
    alike.map((row, index) => {
      const isFound = missing?.has(index) === false;
      return [index, isFound ? "the database had no records of owners" : unknown(row)] as const;
    }),
  );
}

/** `undefined` where a value is none of its column's type. */
async function compareReadable(table: Table, alike: readonly WantedRow[]): Promise<Difference[] | undefined> {
  try {
    return await compareRows(table, alike);
  } catch (error) {
    if (!isUnreadable(sqlStateOf(error))) throw error;
    return undefined;
  }
}

/** The table that the name means, or else those that the rows are in, which were renamed. */
async function tablesFor(connection: Connection, alike: readonly WantedRow[]): Promise<Table[]> {
  const [first] = alike as [WantedRow];
  const columns = columnsOf(first);
  const named = await findTable(connection, parseTableName(first.table, "table"), columns);
  if (named !== undefined) return [named];
  const owners = alike.map(({ uid }) => uid);
  const held = (await tablesOf(connection, owners)).map((oid) => findTable(connection, { oid }, columns));
  return (await Promise.all(held)).filter((table) => table !== undefined);
}

async function differentIn(table: Table, alike: readonly WantedRow[]): Promise<Problems> {
  const [first] = alike;
  if (first === undefined) return new Map();
  const unrecorded = await findUnrecorded(table, alike);
  const replaced = unrecorded.length === 0 ? new Map() : await replacedAmong(table, alike);
  if (replaced.size > 0) {
    const others = alike.flatMap((row, index) => (replaced.has(index) ? [] : [{ row, index }]));
    const rest = await differentIn(
      table,
      others.map(({ row }) => row),
    );
    return new Map([...replaced, ...[...rest].map(([at, problem]) => [others[at]?.index as number, problem] as const)]);
  }
  const missing = columnsOf(first).find((name) => table.columns[name] === undefined);
  if (missing !== undefined) {
    const problem = `table ${formatTableName(table)} had no column ${JSON.stringify(missing)}`;
    return new Map(alike.map((_, index) => [index, problem]));
  }
  const different = await compareRows(table, alike);
  if (different.length + unrecorded.length === 0) return new Map();
  const madeAgain = await describeReplaced(table);
  const before = madeAgain === undefined ? "" : `${madeAgain}, `;
  return new Map([
    ...unrecorded.map((index) => [index, `${before}the row's owner was not recorded`] as const),
    ...different.map((one) => [one.index, before + describeDifference(alike[one.index] as WantedRow, one)] as const),
  ]);
}
