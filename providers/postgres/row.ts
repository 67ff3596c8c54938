import { randomUUID } from "node:crypto";
import type { Input } from "@pulumi/pulumi/output";
import type { CustomResourceOptions } from "@pulumi/pulumi/resource";
import { escapeIdentifier } from "pg";
import { DynamicResource, defineProvider } from "../dynamic";
import type { Owner } from "../kubernetes/ownership";
import type { DiffResult, DynamicProvider, Properties } from "../provider";
import { refuseTableName } from "./allow-list";
import { sqlStateOf } from "./errors";
import { formatTableName, parseTableName, quoteTableName, type TableLocation } from "./identifier";
import { recordsOf, releaseRow, withOwnershipRecords } from "./ownership";
import { withReadTransaction } from "./pool";
import { checkRow } from "./row-check";
import { type ColumnValue, keyOf, type RowInputs, type RowOutputs } from "./row-inputs";
import { deleteRow, writeRow } from "./row-writes";
import { withTable } from "./table-lock";

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

/** Takes and returns values as they are in the database. */
const rows: DynamicProvider<RowInputs, RowOutputs> = {
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

  /** Creates the row, or takes over one that an unrecorded creation for the same owner made. */
  async create(inputs) {
    const location = parseTableName(inputs.table, "table");
    const outs = await writeRow({ ...inputs, location, incarnation: randomUUID(), isOurs: false });
    return { id: `${formatTableName(outs.location)}/${keyOf(inputs).value}`, outs };
  },

  async read(id, outs) {
    const values = await readValues(outs).catch((error: unknown) => {
      if (sqlStateOf(error) === "42P01") return undefined; // without the table there is no row
      throw error;
    });
    return values === undefined ? {} : { id, props: { ...outs, values } };
  },

  /** Makes the row as it should be, also when others deleted it or the record of its owner. */
  async update(_id, { location, incarnation }, news) {
    return { outs: await writeRow({ ...news, location, incarnation, isOurs: true }) };
  },

  async delete(id, outs) {
    await deleteRow(outs).catch((error: unknown) => {
      if (sqlStateOf(error) !== "42P01") throw error;
      return rows.release(id, outs);
    });
  },

  async release(_id, outs) {
    await withOwnershipRecords((connection) => releaseRow(connection, outs));
  },
};

export const { stub: ROW_STUB, provider } = defineProvider("kindstack/providers/postgres/row", rows);

/**
 * Deletes the rows that an owner has by the records, except those of these resources: what an update made that was cut
 * off before its state was saved.
 *
 * @param column the key column of all that the owner ever had
 * @param kept the outputs of all resources that the owner is to have
 * @param options with `release`, the rows are kept, unmanaged
 */
export async function removeOrphanRows(
  owner: Owner,
  column: string,
  kept: readonly Properties[],
  { release }: { release: boolean },
): Promise<void> {
  const incarnations = new Set(kept.map(({ incarnation }) => incarnation));
  const records = await withReadTransaction((connection) => recordsOf(connection, owner.uid));
  for (const { location, key, incarnation } of records) {
    if (incarnations.has(incarnation)) continue;
    const outs = { table: location.name, key: { [column]: key }, values: {}, owner, location, incarnation };
    await (release ? rows.release : rows.delete)("", outs);
  }
}

/**
 * The row's values: as the state has them where the database says that they are equal (23 is equal to a numeric's
 * 23.00), else as they are, as text; `undefined` when there is no row.
 */
function readValues(outs: RowOutputs): Promise<Record<string, ColumnValue> | undefined> {
  const { column, value } = keyOf(outs);
  const columns = Object.keys(outs.values).map(escapeIdentifier);
  const texts = columns.map((name) => `ARRAY[${name}::text]`);
  const changed = columns.map(
    (name, index) => `CASE WHEN ${name} IS DISTINCT FROM $${index + 2} THEN ${texts[index]} END`,
  );
  /** @param live for each column its value in an array, or NULL where it is as in the state */
  const select = (live: string[], parameters: ColumnValue[]): Promise<RowInputs["values"] | undefined> =>
    withTable(outs.location, withReadTransaction, async (connection) => {
      const { rows } = await connection.query<Record<number, [string | null] | null>>(
        `SELECT ${live.map((expression, index) => `${expression} AS "${index}"`).join(", ")}
         FROM ${quoteTableName(outs.location)} WHERE ${escapeIdentifier(column)} = $1`,
        [value, ...parameters],
      );
      const [row] = rows;
      const entries = Object.entries(outs.values);
      return (
        row && Object.fromEntries(entries.map(([name, known], index) => [name, row[index] ? row[index][0] : known]))
      );
    });
  return select(changed, Object.values(outs.values)).catch((error: unknown) => {
    // A state's value that the column's present type has no notion of is not equal to whatever is there.
    if (!sqlStateOf(error)?.startsWith("22") && sqlStateOf(error) !== "42883") throw error;
    return select(texts, []);
  });
}

/** Whether a table's name means, here and now, the table at this place. */
function isTableAt(location: TableLocation, name: string): Promise<boolean> {
  return withReadTransaction(async (connection) => {
    const { rows } = await connection.query<{ same: boolean }>(
      "SELECT to_regclass($1) IS NOT DISTINCT FROM to_regclass($2) AND to_regclass($1) IS NOT NULL AS same",
      [quoteTableName(location), quoteTableName(parseTableName(name, "table"))],
    );
    return rows[0]?.same === true;
  });
}

function sameColumns(olds: Record<string, ColumnValue>, news: Record<string, ColumnValue>): boolean {
  const names = new Set([...Object.keys(olds), ...Object.keys(news)]);
  return [...names].every((name) => (olds[name] ?? null) === (news[name] ?? null));
}
