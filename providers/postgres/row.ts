import { randomUUID } from "node:crypto";
import type { Input } from "@pulumi/pulumi/output";
import type { CustomResourceOptions } from "@pulumi/pulumi/resource";
import { batched } from "../batched";
import { DynamicResource, defineProvider } from "../dynamic";
import type { DiffResult, DynamicProvider } from "../provider";
import { type ResolvedTable, refuseTableName } from "./allow-list";
import { isUnanswered, sqlStateOf } from "./errors";
import { formatTableName, parseTableName, quoteIdentifier, quoteTableName, type TableName } from "./identifier";
import { claimRows, releaseRow, rowConflict, withOwnershipRecords } from "./ownership";
import { type Connection, withConnection } from "./pool";
import { checkRow } from "./row-check";
import type { ColumnValue, RowInputs } from "./row-inputs";
import { lockTimeoutMs, TableUnavailableError, withTable } from "./table-lock";

/** What the state records of one row. `values` are as given where the database says they are equal, else as found. */
export interface RowOutputs extends RowInputs {
  /** The table that `table` meant when the row was made, whatever the `search_path` is later. */
  location: { schema: string; name: string };
  /**
   * Made by each creation and recorded in the database as well. When a row was left and taken again, the delete of
   * the former resource, which may come late, finds another incarnation and leaves the row.
   */
  incarnation: string;
}

/** One row of a table, and nothing but that row: another owner's row with the same key is refused. */
export class Row extends DynamicResource {
  constructor(
    name: string,
    inputs: { [Property in keyof RowInputs]: Input<RowInputs[Property]> },
    options?: CustomResourceOptions,
  ) {
    super({ module: "postgres", name: "Row", stub: ROW_STUB }, name, inputs, options);
  }
}

/** The life of a row, by values as they are in the database. */
export const rows: DynamicProvider<RowInputs, RowOutputs> = {
  /** @throws TerminalError `TableNotAllowed` */
  async check(_olds, news) {
    const failures = checkRow(news);
    if (failures.length === 0) refuseTableName(parseTableName(news.table as string, "table"));
    return { inputs: news, failures };
  },

  /** Another table or another key is another row, which is made before the old one is deleted. */
  async diff(_id, olds, news): Promise<DiffResult> {
    const replaces: string[] = [];
    if (olds.table !== news.table && !(await isTableAt(olds.location, news.table))) replaces.push("table");
    if (!sameColumns(olds.key, news.key)) replaces.push("key");
    const changes =
      replaces.length > 0 ||
      olds.table !== news.table ||
      !sameColumns(olds.values, news.values) ||
      olds.owner.uid !== news.owner.uid ||
      olds.owner.description !== news.owner.description ||
      (news.owner.cluster ?? olds.owner.cluster) !== olds.owner.cluster; // a preview may not know it
    return { changes, replaces, deleteBeforeReplace: false };
  },

  /** Makes the row, or takes over what a creation for the same owner made whose end was not recorded. */
  async create(inputs) {
    const table = parseTableName(inputs.table, "table");
    const outs = await writeRow({ inputs, table, incarnation: randomUUID(), isOurs: false });
    return { id: `${formatTableName(outs.location)}/${keyOf(inputs).value}`, outs };
  },

  async read(id, outs) {
    const values = await readValues(outs).catch((error: unknown) => {
      if (sqlStateOf(error) === "42P01") return undefined; // without the table there is no row
      throw error;
    });
    return values === undefined ? {} : { id, props: { ...outs, values } };
  },

  /** Makes the row as it should be, also when it or the record of its owner was deleted behind our back. */
  async update(_id, olds, news) {
    const { location: table, incarnation } = olds;
    return { outs: await writeRow({ inputs: news, table, incarnation, isOurs: true }) };
  },

  async delete(_id, outs) {
    await deleteBatched(outs).catch(async (error: unknown) => {
      if (sqlStateOf(error) !== "42P01") throw error;
      await withOwnershipRecords((connection) => releaseRow(connection, identityOf(outs)));
    });
  },

  async release(_id, outs) {
    await withOwnershipRecords((connection) => releaseRow(connection, identityOf(outs)));
  },
};

export const { stub: ROW_STUB, provider } = defineProvider("kindstack/providers/postgres/row", rows);

/** A row that is to be written, and where. */
interface Write {
  inputs: RowInputs;
  table: TableName;
  incarnation: string;
  /** Whether the state says that the row is ours, so that one without a record may be overwritten. */
  isOurs: boolean;
}

/** In one batch; more rows are not written any faster. */
const MOST_ROWS = 64;
/** What PostgreSQL's protocol has room for in one statement. */
const MOST_PARAMETERS = 65_535;

/** Whether an error of several rows says nothing of any of them. */
function isForAll(error: unknown): boolean {
  return isUnanswered(error) || error instanceof TableUnavailableError;
}

const writeBatched = batched<Write, ResolvedTable>({
  isForAll,
  run: writeRows,
  batchKey: ({ inputs, table }) =>
    JSON.stringify([quoteTableName(table), keyOf(inputs).column, Object.keys(inputs.values)]),
  maxSize: ({ inputs }) => Math.min(MOST_ROWS, Math.floor(MOST_PARAMETERS / (Object.keys(inputs.values).length + 2))),
});

const deleteBatched = batched<RowOutputs, void>({
  isForAll,
  run: (rows) => {
    const [{ location }] = rows as [RowOutputs];
    return writeTable(location, rows, async (connection) => {
      for (const outs of inOrder(rows, (row) => row)) await deleteRow(connection, outs);
    });
  },
  batchKey: ({ location }) => quoteTableName(location),
  maxSize: () => MOST_ROWS,
});

/**
 * Writes the row and the record of its owner.
 *
 * @throws RetryableError `RowConflict`, `TableMissing` and what else may heal; TerminalError for what cannot be written
 */
async function writeRow(write: Write): Promise<RowOutputs> {
  refuseTableName(write.table);
  const { table, key, values, owner } = write.inputs;
  const { schema, name } = await writeBatched(write);
  return { table, key, values, owner, location: { schema, name }, incarnation: write.incarnation };
}

/** Writes rows of the same columns of one table. */
function writeRows(batch: readonly Write[]): Promise<ResolvedTable> {
  const rows = inOrder(batch, ({ inputs }) => inputs);
  const [{ table: written }] = rows as [Write];
  const claims = rows.map(({ inputs, incarnation }) => ({
    key: keyOf(inputs).value,
    owner: inputs.owner,
    incarnation,
  }));
  const wanted = rows.map(({ inputs }) => inputs);
  return writeTable(written, wanted, async (connection) => {
    const { table, newKeys } = await claimRows(connection, written, claims);
    const isKnown = ({ inputs, isOurs }: Write) => isOurs || !newKeys.has(keyOf(inputs).value);
    for (const mayOverwrite of [true, false]) {
      const those = rows.filter((row) => isKnown(row) === mayOverwrite).map(({ inputs }) => inputs);
      if (those.length > 0) await upsertRows(connection, table, those, mayOverwrite);
    }
    return table;
  });
}

/** Runs a transaction that writes these rows of a table. */
function writeTable<T>(
  table: TableName,
  rows: readonly RowInputs[],
  work: (connection: Connection) => Promise<T>,
): Promise<T> {
  const [first] = rows as [RowInputs];
  const single = rows.length === 1 ? keyOf(first) : undefined;
  return withTable(
    table,
    (inTransaction) => withOwnershipRecords(inTransaction, { lockTimeoutMs: lockTimeoutMs(table) }),
    work,
    single,
  );
}

/** In the same order everywhere, so that of two batches that want the same rows none waits for the other in a circle. */
function inOrder<T>(items: readonly T[], rowOf: (item: T) => RowInputs): T[] {
  return [...items].sort((one, other) => (keyOf(rowOf(one)).value < keyOf(rowOf(other)).value ? -1 : 1));
}

async function upsertRows(
  connection: Connection,
  table: TableName,
  rows: readonly RowInputs[],
  mayOverwrite: boolean,
): Promise<void> {
  const [first] = rows as [RowInputs];
  const key = quoteIdentifier(keyOf(first).column);
  const names = Object.keys(first.values);
  const columns = names.map(quoteIdentifier);
  const parameters = rows.flatMap((row) => [keyOf(row).value, ...names.map((name) => row.values[name])]);
  const width = names.length + 1;
  const tuples = rows.map((_, row) => Array.from({ length: width }, (_, column) => `$${2 + row * width + column}`));
  const { rowCount } = await connection.query(
    `INSERT INTO ${quoteTableName(table)} (${[key, ...columns].join(", ")})
     VALUES ${tuples.map((tuple) => `(${tuple.join(", ")})`).join(", ")}
     ON CONFLICT (${key}) DO UPDATE
     SET ${columns.map((column) => `${column} = EXCLUDED.${column}`).join(", ")} WHERE $1::boolean`,
    [mayOverwrite, ...parameters],
  );
  if (rowCount !== rows.length) {
    throw rowConflict(table, keyOf(first).value, "was not created by Kindstack; delete it, or use another table");
  }
}

/**
 * Deletes the row together with the record that it is ours. Without any record, as after the restore of a backup that
 * left out the records, the row is deleted if it is just as we wrote it. The comparison is made in JSON because it must
 * not fail: a column that has another type by now would otherwise keep its object from ever being deleted.
 */
async function deleteRow(connection: Connection, outs: RowOutputs): Promise<void> {
  const { column, value } = keyOf(outs);
  await connection.query(
    `WITH released AS (
       DELETE FROM kindstack_ownership.rows
       WHERE table_schema = $1 AND table_name = $2 AND key = $3 AND incarnation = $4
       RETURNING key
     )
     DELETE FROM ${quoteTableName(outs.location)} AS live
     WHERE ${quoteIdentifier(column)} = $5 AND (
       EXISTS (SELECT FROM released) OR
       to_jsonb(live.*) @> $6::jsonb AND NOT EXISTS (
         SELECT FROM kindstack_ownership.rows WHERE table_schema = $1 AND table_name = $2 AND key = $3
       )
     )`,
    [outs.location.schema, outs.location.name, value, outs.incarnation, value, JSON.stringify(outs.values)],
  );
}

/**
 * The row's values: as the state has them where the database says that they are equal (23 is equal to a numeric's
 * 23.00), else as they are, as text; `undefined` when there is no row.
 */
function readValues(outs: RowOutputs): Promise<Record<string, ColumnValue> | undefined> {
  const key = keyOf(outs);
  const wanted = Object.entries(outs.values);
  const columns = wanted.map(([name]) => quoteIdentifier(name));
  const source = `FROM ${quoteTableName(outs.location)} WHERE ${quoteIdentifier(key.column)} = $1`;
  const isDistinct = columns.map((column, index) => `${column} IS DISTINCT FROM $${index + 2}`);
  return withTable(outs.location, withConnection, async (connection) => {
    try {
      const live = columns.map((column, index) => `CASE WHEN ${isDistinct[index]} THEN ${column}::text END`);
      const { rows } = await connection.queryArrays<(boolean | string | null)[]>(
        `SELECT ${[...isDistinct, ...live].join(", ")} ${source}`,
        [key.value, ...Object.values(outs.values)],
      );
      return rows[0] && foundValues(wanted, rows[0]);
    } catch (error) {
      // A state's value that the column's present type has no notion of is not equal to whatever is there.
      if (!sqlStateOf(error)?.startsWith("22") && sqlStateOf(error) !== "42883") throw error;
      const live = columns.map((column) => `${column}::text`);
      const { rows } = await connection.queryArrays<(string | null)[]>(`SELECT ${live.join(", ")} ${source}`, [
        key.value,
      ]);
      return rows[0] && foundValues(wanted, [...columns.map(() => true), ...rows[0]]);
    }
  });
}

/** @param row for each column whether its value is another one, then the values of those */
function foundValues(wanted: [string, ColumnValue][], row: (boolean | string | null)[]): Record<string, ColumnValue> {
  return Object.fromEntries(
    wanted.map(([name, value], index) => [name, row[index] ? (row[wanted.length + index] as string | null) : value]),
  );
}

/** Whether a table's name means, here and now, the table at this place. */
function isTableAt(location: { schema: string; name: string }, name: string): Promise<boolean> {
  return withConnection(async (connection) => {
    const { rows } = await connection.query<{ same: boolean }>(
      "SELECT to_regclass($1) IS NOT DISTINCT FROM to_regclass($2) AND to_regclass($1) IS NOT NULL AS same",
      [quoteTableName(location), quoteTableName(parseTableName(name, "table"))],
    );
    return rows[0]?.same === true;
  });
}

function identityOf(outs: RowOutputs): { table: RowOutputs["location"]; key: string; incarnation: string } {
  return { table: outs.location, key: keyOf(outs).value, incarnation: outs.incarnation };
}

/** The column that identifies a row, and its value there. */
export function keyOf({ key }: RowInputs): { column: string; value: string } {
  const [[column, value] = ["", ""]] = Object.entries(key);
  return { column, value };
}

function sameColumns(olds: Record<string, ColumnValue>, news: Record<string, ColumnValue>): boolean {
  const names = new Set([...Object.keys(olds), ...Object.keys(news)]);
  return [...names].every((name) => (olds[name] ?? null) === (news[name] ?? null));
}
