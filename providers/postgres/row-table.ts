import { columnsOf } from "./comparison";
import { parseTableName, type TableLocation } from "./identifier";
import { placeOf, recordedPlaces, recordOfTable } from "./placement";
import type { Connection } from "./pool";
import type { RowInputs } from "./row-inputs";
import { findTable, type Table, tableMissing } from "./tables";

/** A row that is to be written. */
export interface RowWrite extends RowInputs {
  incarnation: string;
  /** Where the state says that the row is; absent for a row that has yet to be made. One without a record may be overwritten. */
  location?: TableLocation;
}

/** Several rows cannot be written together; each is written alone. */
class NotTogetherError extends Error {}

/** The table of rows. */
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
