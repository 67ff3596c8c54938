import { RetryableError } from "../errors";
import { columnsOf } from "./comparison";
import { formatTableName, parseTableName, quoteTableName, type TableLocation, type TableName } from "./identifier";
import type { Connection } from "./pool";
import { type Keyed, keyOf, type RowInputs, type RowOutputs } from "./row-inputs";
import { containsTable, findTable, type Table, tableMissing } from "./tables";

/*
 * Which table a row is in. Records name tables by their OIDs, which renames leave as they are. An OID means the same table
 * only in the same database of the same server: after a dump and restore, the recorded name tells.
 */

/** Two databases have the same only if one is a copy of the other's files. */
export const SERVER = `(SELECT system_identifier || '/' || pg_database.oid FROM pg_control_system(), pg_database
  WHERE datname = current_database())`;

const IS_HERE = `known.server = ${SERVER} AND EXISTS (SELECT FROM pg_class WHERE pg_class.oid = known.oid)`;

/** The OID of the table that a row of `kindstack_ownership.tables AS known` means here and now, or NULL. */
const PRESENT_OID = `CASE WHEN ${IS_HERE} THEN known.oid ELSE (
  SELECT named.oid FROM (SELECT to_regclass(format('%I.%I', known.table_schema, known.table_name))::oid AS oid) AS named
  WHERE NOT EXISTS (SELECT FROM kindstack_ownership.tables AS other WHERE other.server = ${SERVER} AND other.oid = named.oid)
) END`;

/** The id under which a table's rows are recorded; `undefined` when none ever was. */
export async function tableId({ connection, oid, schema, name }: Table): Promise<string | undefined> {
  const { rows } = await connection.query<{ id: string }>(
    `SELECT id FROM kindstack_ownership.tables AS known
     WHERE server = ${SERVER} AND oid = $1::oid OR table_schema = $2 AND table_name = $3 AND NOT (${IS_HERE})
     ORDER BY server = ${SERVER} AND oid = $1::oid DESC, id DESC LIMIT 1`,
    [oid, schema, name],
  );
  return rows[0]?.id;
}

/** What a table is recorded under, with the name that it had then; `undefined` when it has no record of its identity. */
async function recordOfTable(
  connection: Connection,
  table: TableName,
): Promise<(TableLocation & { id: string }) | undefined> {
  const { rows } = await connection.query<TableLocation & { id: string }>(
    `SELECT id, table_schema AS schema, table_name AS name FROM kindstack_ownership.tables
     WHERE oid = to_regclass($1) AND server = ${SERVER}`,
    [quoteTableName(table)],
  );
  return rows[0];
}

/**
 * Records a table's present identity and name. Records of a former table of that name which is gone, such as before a dump
 * and restore, become this table's.
 */
export async function recordTable(table: Table): Promise<string> {
  const { connection, oid, schema, name } = table;
  const present = [oid, schema, name];
  const id = await tableId(table);
  if (id !== undefined) {
    await connection.query(
      `UPDATE kindstack_ownership.tables SET server = ${SERVER}, oid = $1::oid, table_schema = $2, table_name = $3 WHERE id = $4`,
      [...present, id],
    );
    return id;
  }
  const { rows } = await connection.query<{ id: string }>(
    `INSERT INTO kindstack_ownership.tables AS known (server, oid, table_schema, table_name) VALUES (${SERVER}, $1::oid, $2, $3)
     ON CONFLICT (server, oid) DO UPDATE SET table_schema = excluded.table_schema, table_name = excluded.table_name
     RETURNING id`,
    present,
  );
  return (rows[0] as { id: string }).id;
}

/** That a table has the place of one that was recorded under its name and is gone, for people; `undefined` when it has not. */
export async function describeReplaced({ connection, oid, schema, name }: Table): Promise<string | undefined> {
  const { rows } = await connection.query<{ restored: boolean }>(
    `SELECT server <> ${SERVER} AS restored FROM kindstack_ownership.tables AS known
     WHERE table_schema = $2 AND table_name = $3 AND NOT (${IS_HERE})
       AND NOT EXISTS (SELECT FROM kindstack_ownership.tables WHERE server = ${SERVER} AND oid = $1::oid)
     ORDER BY id DESC LIMIT 1`,
    [oid, schema, name],
  );
  if (rows[0] === undefined) return undefined;
  const what = rows[0].restored
    ? "is that of another server or database, as after a restore"
    : "was dropped and made again";
  return `table ${formatTableName({ schema, name })} ${what}`;
}

/** Where a record says that a row is. */
interface RecordedPlace {
  incarnation: string;
  tableId: string;
  /** The table's; `null` when it was dropped. */
  oid: string | null;
}

/** The records of rows, by their incarnations. @param lock until the transaction's end */
export async function recordedPlaces(
  connection: Connection,
  incarnations: readonly string[],
  { lock = false } = {},
): Promise<ReadonlyMap<string, RecordedPlace>> {
  if (incarnations.length === 0) return new Map();
  const { rows } = await connection.query<RecordedPlace>(
    `SELECT held.incarnation, held.table_id AS "tableId", (${PRESENT_OID})::text AS oid
     FROM kindstack_ownership.records AS held JOIN kindstack_ownership.tables AS known ON known.id = held.table_id
     WHERE held.incarnation = ANY($1)
     ORDER BY oid NULLS FIRST, held.key COLLATE "C" -- of two, the one of a table that exists counts
     ${lock ? "FOR UPDATE OF held" : ""}`,
    [incarnations],
  );
  return new Map(rows.map((place) => [place.incarnation, place]));
}

/** Removes the record of a table that is gone, if no other row is recorded in it. */
export async function removeRecordedTable(connection: Connection, id: string): Promise<void> {
  await connection.query(
    `DELETE FROM kindstack_ownership.tables WHERE id = $1
       AND NOT EXISTS (SELECT FROM kindstack_ownership.records WHERE table_id = $1)`,
    [id],
  );
}

/** The tables that hold an owner's rows, by their OIDs. */
export async function tablesOf(connection: Connection, owners: readonly string[]): Promise<string[]> {
  const { rows } = await connection.query<{ oid: string }>(
    `SELECT oid FROM (
       SELECT DISTINCT (${PRESENT_OID})::text AS oid FROM kindstack_ownership.tables AS known
       WHERE EXISTS (SELECT FROM kindstack_ownership.records WHERE table_id = known.id AND owner = ANY($1))
     ) AS present WHERE oid IS NOT NULL`,
    [owners],
  );
  return rows.map(({ oid }) => oid);
}

export async function recordsOf(
  connection: Connection,
  owner: string,
): Promise<{ location: TableLocation; key: string; incarnation: string }[]> {
  const { rows } = await connection.query<{ schema: string; name: string; key: string; incarnation: string }>(
    `SELECT known.table_schema AS schema, known.table_name AS name, held.key, held.incarnation
     FROM kindstack_ownership.records AS held JOIN kindstack_ownership.tables AS known ON known.id = held.table_id
     WHERE held.owner = $1`,
    [owner],
  );
  return rows.map(({ schema, name, ...record }) => ({ location: { schema, name }, ...record }));
}

export interface Place {
  /** `undefined` when there is no such table any more. */
  table: Table | undefined;
  /** Another table, which the name means by now, and the error for what needs the row to be in it. */
  replaced?: { by: Table; error: RetryableError };
}

/**
 * The table of an existing row: the recorded table, or the table of that name if it has taken over the recorded table's rows.
 * Without a record, the table of that name, or else the state's.
 */
export async function placeOf(
  connection: Connection,
  row: Pick<RowOutputs, "table" | "location" | "key">,
  columns: readonly string[],
  recorded: RecordedPlace | undefined,
): Promise<Place> {
  const named = await findTable(connection, parseTableName(row.table, "table"), columns);
  if (!recorded?.oid) return { table: named ?? (await findTable(connection, row.location, columns)) };
  if (recorded.oid === named?.oid) return { table: named };
  const held = await findTable(connection, { oid: recorded.oid }, columns);
  if (named === undefined || held === undefined) return { table: held };
  if (await containsTable(connection, named.oid, recorded.oid)) return { table: named };
  return { table: held, replaced: { by: named, error: tableReplaced(row, held, named, recorded) } };
}

/**
 * Of rows that are not recorded in the table that their name means: those recorded in another table, under this name. By their
 * index, the error that {@link placeOf} has for them.
 */
export async function replacedAmong(
  named: Table,
  rows: readonly (Keyed & { uid: string })[],
): Promise<ReadonlyMap<number, RetryableError>> {
  const { connection } = named;
  const { rows: recorded } = await connection.query<Omit<RecordedPlace, "incarnation"> & { position: string }>(
    `SELECT wanted.position, held.table_id AS "tableId", (${PRESENT_OID})::text AS oid
     FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS wanted(key, owner, position)
     JOIN kindstack_ownership.records AS held ON held.key = wanted.key AND held.owner = wanted.owner
     JOIN kindstack_ownership.tables AS known ON known.id = held.table_id
     WHERE table_schema = $3 AND table_name = $4 -- an owner may have rows of one key in several tables`,
    [rows.map((row) => keyOf(row).value), rows.map(({ uid }) => uid), named.schema, named.name],
  );
  const places = [...new Set(recorded.map(({ oid }) => oid))].filter((oid) => oid !== null && oid !== named.oid);
  const others = new Map<string | null, Table>();
  for (const oid of places as string[]) {
    const held = await findTable(connection, { oid });
    if (held !== undefined && !(await containsTable(connection, named.oid, oid))) others.set(oid, held);
  }
  return new Map(
    recorded.flatMap(({ position, ...place }) => {
      const [index, held] = [Number(position) - 1, others.get(place.oid)];
      return held === undefined ? [] : [[index, tableReplaced(rows[index] as Keyed, held, named, place)] as const];
    }),
  );
}

function tableReplaced(row: Keyed, held: Table, named: Table, { tableId }: Pick<RecordedPlace, "tableId">) {
  const [present, former] = [formatTableName(named), formatTableName(held)];
  return new RetryableError(
    "TableReplaced",
    `row ${JSON.stringify(keyOf(row).value)} is in the table that is now called ${former}; ${present} is another table. ` +
      `Name ${former} in the object, or, if ${present} has taken its place with all rows, run: ` +
      `UPDATE kindstack_ownership.tables SET oid = ${named.oid} WHERE id = ${tableId}`,
  );
}

export interface RowWrite extends RowInputs {
  incarnation: string;
  /** Where the state says that the row is; absent for a row that has yet to be made. One without a record may be overwritten. */
  location?: TableLocation;
}

/** Several rows cannot be written together; each is written alone. */
class NotTogetherError extends Error {}

export interface RowTable {
  table: Table;
  /** What it is recorded under with its present name. */
  id?: string | undefined;
  /** Set where the row's record names another table that it was in. */
  hasMoved?: boolean;
}

/** The table that all these rows are in, or are to be in. @throws NotTogetherError, RetryableError `TableMissing`, `TableReplaced` */
export async function commonTable(connection: Connection, all: readonly [RowWrite, ...RowWrite[]]): Promise<RowTable> {
  const [{ location, ...first }] = all;
  const name = parseTableName(first.table, "table");
  const made = all.flatMap((row) => (row.location === undefined ? [] : [row.incarnation]));
  const [named, recordedAs, places] = await Promise.all([
    findTable(connection, name, columnsOf(first)),
    recordOfTable(connection, name),
    recordedPlaces(connection, made),
  ]);
  const isElsewhere = [...places.values()].some(({ oid }) => oid !== null && oid !== named?.oid);
  if (named !== undefined && !isElsewhere) {
    const isCurrent = recordedAs?.schema === named.schema && recordedAs.name === named.name;
    return { table: named, id: isCurrent ? recordedAs.id : undefined };
  }
  if (all.length > 1) throw new NotTogetherError();
  const recorded = places.get(first.incarnation);
  const place = location && (await placeOf(connection, { ...first, location }, columnsOf(first), recorded));
  if (place?.replaced !== undefined) throw place.replaced.error;
  const table = place?.table;
  if (table === undefined) throw tableMissing(name);
  return { table, hasMoved: recorded !== undefined && recorded.oid !== table.oid };
}
