import { randomUUID } from "node:crypto";
import type { Input } from "@pulumi/pulumi/output";
import { DynamicResource, defineProvider } from "../dynamic";
import { refusingManaged } from "../kubernetes/managed-owner";
import type { Owner } from "../kubernetes/ownership";
import type { CallContext, DiffResult, DynamicProvider, Properties } from "../provider";
import type { DynamicResourceOptions } from "../resource-options";
import { columnsOf, compareRows, isUnreadable, type LiveColumns } from "./comparison";
import { sqlStateOf } from "./errors";
import { formatTableName, parseTableName, refuseTableName } from "./identifier";
import { findRecord, releaseRow } from "./ownership";
import { type Place, placeOf, recordedPlaces, recordsOf } from "./placement";
import { type Connection, withReadTransaction, withTransaction } from "./pool";
import { refuseAbsence } from "./row-absence";
import { deleteRow, observeDeletion } from "./row-deletes";
import { type ColumnValue, checkRow, keyOf, type RowInputs, type RowOutputs, type RowOwner } from "./row-inputs";
import { observeRow, readColumns } from "./row-observation";
import { writeRow } from "./row-writes";
import { hasRecords, withTable } from "./table-lock";
import { containsTable, findTable, type Table } from "./tables";

/** One row of a table, and nothing but that row: another owner's row with the same key is refused. */
export class Row extends DynamicResource {
  constructor(
    name: string,
    inputs: { [Property in keyof RowInputs]: Input<RowInputs[Property]> },
    options?: DynamicResourceOptions,
  ) {
    super({ module: "postgres", name: "Row", stub: ROW_STUB }, name, inputs, options);
  }
}

/** Takes and returns values as they are in the database. */
const rows: DynamicProvider<RowInputs, RowOutputs> = {
  identify: ({ table, key }) =>
    typeof key === "object" && key !== null ? JSON.stringify([table, Object.entries(key)]) : undefined,

  /** @throws TerminalError `TableNotAllowed` */
  async check(_olds, news) {
    const failures = checkRow(news);
    if (failures.length === 0) {
      const { table, owner } = news as unknown as RowInputs;
      refuseTableName(parseTableName(table, "table"), owner.namespace);
    }
    return { inputs: news, failures };
  },

  /** Another table or another key is another row, which is made before the old one is deleted. */
  async diff(_id, olds, news): Promise<DiffResult> {
    const replaces: string[] = [];
    if (olds.table !== news.table && !(await hasRowIn(olds, news.table))) replaces.push("table");
    if (!sameColumns(olds.key, news.key)) replaces.push("key");
    const changes =
      replaces.length > 0 ||
      olds.table !== news.table ||
      !sameColumns(olds.values, news.values) ||
      olds.owner.uid !== news.owner.uid ||
      olds.owner.description !== news.owner.description ||
      isOtherCluster(olds.owner, news.owner);
    return { changes, replaces, deleteBeforeReplace: false };
  },

  /** Creates the row, or takes over one that an unrecorded creation for the same owner made. */
  async create(inputs, context) {
    const outs = await writeRow({ ...inputs, incarnation: randomUUID() }, undefined, context);
    return { id: `${formatTableName(outs.location)}/${keyOf(inputs).value}`, outs };
  },

  async read(id, outs) {
    const live = await readRow(outs);
    if (live === undefined) return {};
    const drift = Object.entries(outs.values).flatMap(([name, wanted]) => {
      const is = live.values[name] ?? null;
      return is === (wanted ?? null) ? [] : [{ field: name, wanted, live: is }];
    });
    return { id, props: drift.length > 0 ? { ...live, drift } : live };
  },

  /** Makes the row as it should be, also when others deleted it or the record of its owner. */
  async update(_id, { location, incarnation, values }, news, context) {
    return { outs: await writeRow({ ...news, location, incarnation }, values, context) };
  },

  delete: (_id, outs, context) => deleteRow(outs, context),

  release: (_id, outs, context) =>
    withTransaction(context?.fence, async (connection) => {
      if (await hasRecords(connection)) await releaseRow(connection, outs.incarnation);
    }),

  comparesInWrite: true,

  observe: (inputs, outs, context) =>
    inputs === undefined ? observeDeletion(outs as RowOutputs) : observeRow(inputs, outs, context),
};

export const { stub: ROW_STUB, provider } = defineProvider("kindstack/providers/postgres/row", refusingManaged(rows));

/**
 * Deletes the recorded rows of an owner, except the rows of the kept resources: an update that was cut off may have written
 * rows that no state has.
 *
 * @param column the key column of all that the owner ever had
 * @param kept the outputs of all resources that the owner is to have
 * @param options with `release`, the rows are kept, unmanaged
 * @returns which ones; an error names those before it
 */
export async function removeUntrackedRows(
  owner: Owner,
  column: string,
  kept: readonly Properties[],
  { release }: { release: boolean },
  context: CallContext,
): Promise<string[]> {
  const incarnations = new Set(kept.map(({ incarnation }) => incarnation));
  const records = await withReadTransaction(async (connection) =>
    (await hasRecords(connection)) ? recordsOf(connection, owner.uid) : [],
  );
  const removed: string[] = [];
  for (const { location, key, incarnation } of records) {
    if (incarnations.has(incarnation)) continue;
    const table = formatTableName(location);
    const outs = { table, key: { [column]: key }, values: {}, owner, location, incarnation };
    try {
      await (release ? rows.release : rows.delete)("", outs, context);
    } catch (error) {
      // No later try finds those that are gone.
      if (error instanceof Error && removed.length > 0) error.message += `; already removed: ${removed.join(", ")}`;
      throw error;
    }
    removed.push(`row ${key} of table ${table}`);
  }
  return removed;
}

/**
 * The row with its values: as the state has them where the database says that they are equal (23 is equal to a numeric's
 * 23.00), else as they are, as text. `undefined` when there is no row, or when it is another owner's by now.
 *
 * @throws RetryableError `OwnershipTableMissing` where the row is not found and the database has no records at all
 */
function readRow(outs: RowOutputs): Promise<RowOutputs | undefined> {
  const read = (compares: boolean): Promise<RowOutputs | undefined> =>
    withTable(parseTableName(outs.table, "table"), withReadTransaction, async (connection) => {
      const recorded = await hasRecords(connection);
      if (!recorded) await refuseAbsence(connection, outs);
      const { table, replaced } = await findPlace(connection, outs, recorded);
      if (table === undefined) return undefined;
      const found = await recordedOwner(table, outs, recorded);
      // The write that follows says that the table was replaced, unless the object names the former one by now.
      const owner = found && replaced ? { ...found, uid: "" } : found;
      if (owner === undefined) return undefined;
      const live = await (compares ? readDifferences : readTexts)(table, outs);
      return live && { ...outs, owner, values: { ...outs.values, ...live } };
    });
  return read(true).catch((error: unknown) => {
    // A state's value that the column's present type has no notion of is not equal to whatever is there.
    if (!isUnreadable(sqlStateOf(error))) throw error;
    return read(false);
  });
}

/** @param recorded whether the database has records at all, as {@link hasRecords} says */
async function findPlace(connection: Connection, outs: RowOutputs, recorded: boolean): Promise<Place> {
  const places = recorded ? await recordedPlaces(connection, [outs.incarnation]) : undefined;
  return placeOf(connection, outs, columnsOf(outs), places?.get(outs.incarnation));
}

/**
 * The owner that the row is recorded for; without a UID when it has to be recorded again, and `undefined` when the row is
 * another owner's.
 */
async function recordedOwner(table: Table, outs: RowOutputs, recorded: boolean): Promise<RowOwner | undefined> {
  const record = recorded ? await findRecord(table, outs) : undefined;
  if (record?.incarnation === outs.incarnation) return outs.owner;
  return record === undefined || record.owner === outs.owner.uid ? { ...outs.owner, uid: "" } : undefined;
}

async function readDifferences(table: Table, outs: RowOutputs): Promise<LiveColumns | undefined> {
  const [difference] = await compareRows(table, [outs]);
  return difference === undefined ? {} : difference.live;
}

async function readTexts(table: Table, { key, values }: RowOutputs): Promise<LiveColumns | undefined> {
  return (await readColumns(table, [{ key, columns: Object.keys(values) }]))[0];
}

/** Whether the row is, here and now, in the table that a name means. */
function hasRowIn(outs: RowOutputs, name: string): Promise<boolean> {
  return withReadTransaction(async (connection) => {
    const recorded = await hasRecords(connection);
    if (!recorded) await refuseAbsence(connection, outs);
    const { table: held } = await findPlace(connection, outs, recorded);
    const named = await findTable(connection, parseTableName(name, "table"));
    if (held === undefined || named === undefined) return false;
    return held.oid === named.oid || containsTable(connection, named.oid, held.oid);
  });
}

/** A preview may not know the cluster. */
function isOtherCluster({ cluster: old }: RowOwner, { cluster }: RowOwner): boolean {
  return cluster !== undefined && (cluster.name !== old?.name || cluster.uid !== old.uid);
}

function sameColumns(olds: Record<string, ColumnValue>, news: Record<string, ColumnValue>): boolean {
  const names = new Set([...Object.keys(olds), ...Object.keys(news)]);
  return [...names].every((name) => (olds[name] ?? null) === (news[name] ?? null));
}
