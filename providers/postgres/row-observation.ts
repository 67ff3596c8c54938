import { escapeIdentifier } from "pg";
import { ClassifiedError, type RetryableError } from "../errors";
import { isRecord } from "../kubernetes/field-path";
import { planOutdated } from "../observation";
import type { CallContext, Hold } from "../provider";
import { compareRows, isUnreadable, type LiveColumns } from "./comparison";
import { sqlStateOf } from "./errors";
import { formatTableName, parseTableName, quoteTableName } from "./identifier";
import { commonTable, type RowTable, type RowWrite, tableId } from "./placement";
import { type Connection, withReadTransaction } from "./pool";
import { refuseAbsence } from "./row-absence";
import { batchedRows } from "./row-batch";
import { type Keyed, keyOf, type RowInputs, type RowOutputs } from "./row-inputs";
import { hasRecords, withTable } from "./table-lock";
import { findTable, type Table, tableMissing } from "./tables";

/* What a write of a row overwrites: the live values, as text, of the columns that it writes, and whose row it is. */

interface Wanted extends Keyed {
  columns: readonly string[];
}

/** A write that is held to what a preview has seen. */
export interface HeldRow extends RowWrite {
  hold?: Hold | undefined;
  /** As the state has them. */
  former?: RowInputs["values"] | undefined;
}

interface Found {
  /** `undefined` when there is no such row. */
  row: LiveColumns | undefined;
  record: { owner: string; incarnation: string } | undefined;
}

/** What a row that is to be written finds; see {@link DynamicProvider.observe}. */
export async function observeRow(
  inputs: RowInputs,
  outs: RowOutputs | undefined,
  context: CallContext,
): Promise<unknown> {
  // A preview may know no input at all: then it is about the row that the state has.
  const named = isRecord(inputs.key) ? inputs : outs && { ...outs, values: inputs.values };
  if (named === undefined) return null;
  const { incarnation = "", location } = outs ?? {};
  const row = { ...named, incarnation, ...(location && { location }) };
  try {
    const found = await lookUp(row, context?.fence);
    return found.get(row);
  } catch (error) {
    // No table has no rows, and a value that is none of the key's type is no row's key.
    if (error instanceof ClassifiedError && error.reason === "TableMissing") return overwritten(row);
    if (isUnreadable(sqlStateOf(error))) return overwritten(row);
    throw error;
  }
}

const NOTHING: Found = { row: undefined, record: undefined };

const lookUp = batchedRows<RowWrite, ReadonlyMap<RowWrite, unknown>>({
  batchKey: (row) => JSON.stringify([row.table, keyOf(row).column, columnsIn(row)]),
  run: (batch) => {
    const all = batch as readonly [RowWrite, ...RowWrite[]];
    return withTable(parseTableName(all[0].table, "table"), withReadTransaction, async (connection) => {
      const { table, id } = await tableToWrite(connection, all);
      const found = await find(table, id, all);
      const done = await findDone(table, all, found).catch((error: unknown) => {
        // A value that the column's type has no notion of is not there.
        if (all.length > 1 || !isUnreadable(sqlStateOf(error))) throw error;
        return new Set();
      });
      return new Map(all.map((row) => [row, done.has(row) ? null : overwritten(row, found.get(row))]));
    });
  },
});

/** The table that a write would find, where there may be no records yet. @throws as {@link commonTable} and {@link refuseAbsence} */
export async function tableToWrite(connection: Connection, all: readonly [RowWrite, ...RowWrite[]]): Promise<RowTable> {
  if (await hasRecords(connection)) {
    const { table, id } = await commonTable(connection, all);
    return { table, id: id ?? (await tableId(table)) };
  }
  for (const { location, ...row } of all) {
    if (location !== undefined) await refuseAbsence(connection, { ...row, location });
  }
  const name = parseTableName(all[0].table, "table");
  const table = await findTable(connection, name, [keyOf(all[0]).column, ...columnsIn(all[0])]);
  if (table === undefined) throw tableMissing(name);
  return { table };
}

/**
 * Locks rows that are to be written, and refuses those that are not as the preview saw them.
 *
 * @param id of the table
 * @returns those that are not there, and may not be overwritten should they appear
 * @throws RetryableError `PlanOutdated`
 */
export async function refuseOutdated(table: Table, id: string, all: readonly HeldRow[]): Promise<ReadonlySet<HeldRow>> {
  const held = all.filter(({ hold }) => hold !== undefined);
  if (held.length === 0) return new Set();
  const found = await find(table, id, held, "FOR NO KEY UPDATE");
  const outdated = held.filter((row) => !row.hold?.admits(overwritten(row, found.get(row))));
  const done = await findDone(table, outdated, found);
  const refused = outdated.find((row) => !done.has(row));
  if (refused !== undefined) throw await outdatedRow(table, refused, refused.former);
  return new Set(held.filter((row) => found.get(row)?.row === undefined));
}

/** The columns that a write was known to write, when the world was observed. */
function wantedOf(row: HeldRow): Wanted {
  return { key: row.key, columns: columnsIn(row.hold?.asObserved(row) ?? row) };
}

function columnsIn({ values }: Pick<RowInputs, "values">): string[] {
  return isRecord(values) ? Object.keys(values) : [];
}

/** What a write overwrites, by what it finds; `null` for nothing. */
function overwritten({ owner, location }: RowWrite, { row, record }: Found = NOTHING): unknown {
  const isFree = record === undefined || record.owner === owner.uid;
  // An update makes a row again that is gone, which is something else than the preview saw.
  if (location === undefined && row === undefined && isFree) return null;
  return { row: row ?? null, of: record ?? null };
}

/** Those that are as they are to be already, and the owner's: an update was cut off after it had written them. */
async function findDone<Row extends RowWrite>(
  table: Table,
  rows: readonly Row[],
  found: ReadonlyMap<RowWrite, Found>,
): Promise<ReadonlySet<Row>> {
  const ours = rows.filter((row) => {
    const { row: live, record } = found.get(row) ?? NOTHING;
    return live !== undefined && record?.owner === row.owner.uid && isRecord(row.values);
  });
  if (ours.some((row) => columnsIn(row).some((name) => table.columns[name] === undefined))) return new Set();
  const different = new Set((await compareRows(table, ours)).map(({ index }) => ours[index]));
  return new Set(ours.filter((row) => !different.has(row)));
}

/** What there is of rows of a table that has the same key column for all. @param id of the table; absent when it has no records */
async function find(
  table: Table,
  id: string | undefined,
  rows: readonly HeldRow[],
  lock?: "FOR NO KEY UPDATE",
): Promise<ReadonlyMap<RowWrite, Found>> {
  const keys = rows.map((row) => keyOf(row).value);
  // In the order in which writes lock: the records, then the rows.
  const { rows: records } =
    id === undefined
      ? { rows: [] }
      : await table.connection.query<{ key: string; owner: string; incarnation: string }>(
          `SELECT key, owner, incarnation FROM kindstack_ownership.records WHERE table_id = $1 AND key = ANY($2)
           ORDER BY key ${lock ? "FOR UPDATE" : ""}`,
          [id, keys],
        );
  const byKey = new Map(records.map(({ key, owner, incarnation }) => [key, { owner, incarnation }]));
  const live = await readColumns(table, rows.map(wantedOf), lock);
  return new Map(rows.map((row, index) => [row, { row: live[index], record: byKey.get(keyOf(row).value) }]));
}

/** The columns of rows as text, without those that the table does not have; by the rows' indices. */
export async function readColumns(
  table: Table,
  rows: readonly Wanted[],
  lock: "FOR NO KEY UPDATE" | "FOR UPDATE" | "" = "",
): Promise<(LiveColumns | undefined)[]> {
  const [first] = rows;
  if (first === undefined) return [];
  const key = keyOf(first).column;
  const names = [...new Set(rows.flatMap(({ columns }) => columns))].filter(
    (name) => table.columns[name] !== undefined,
  );
  const selected = names.map((name, index) => `live.${escapeIdentifier(name)}::text AS "${index}"`);
  const { rows: found } = await table.connection.query<{ position: string; [column: number]: string | null }>(
    `SELECT ${["given.position", ...selected].join(", ")}
     FROM unnest($1::text[]) WITH ORDINALITY AS given(key, position)
     JOIN ${quoteTableName(table)} AS live ON live.${escapeIdentifier(key)} = given.key::${table.columns[key]?.type ?? "text"}
     ORDER BY given.position ${lock && `${lock} OF live`}`,
    [rows.map((row) => keyOf(row).value)],
  );
  const byIndex = new Map(found.map((row) => [Number(row.position) - 1, row]));
  return rows.map(({ columns }, index) => {
    const row = byIndex.get(index);
    const own = (name: string) => [name, row?.[names.indexOf(name)] ?? null] as const;
    return row && Object.fromEntries(columns.filter((name) => names.includes(name)).map(own));
  });
}

/** @param former the values as the state has them */
export async function outdatedRow(
  table: Table,
  { key }: Keyed,
  former: RowInputs["values"] = {},
): Promise<RetryableError> {
  const known = Object.entries(former).filter(([name]) => table.columns[name] !== undefined);
  const [difference] = known.length > 0 ? await compareRows(table, [{ key, values: Object.fromEntries(known) }]) : [];
  const changed = Object.keys(difference?.live ?? {}).map((name) => `column ${JSON.stringify(name)}`);
  return planOutdated(`row ${JSON.stringify(keyOf({ key }).value)} of table ${formatTableName(table)}`, changed);
}
