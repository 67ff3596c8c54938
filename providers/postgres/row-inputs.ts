import type { Cluster } from "../kubernetes/cluster";
import type { Owner } from "../kubernetes/ownership";
import type { FieldDrift } from "../provider";
import type { TableLocation } from "./identifier";

/** What a column can be given; PostgreSQL turns it into the column's type. */
export type ColumnValue = string | number | boolean | null;

/** For whom a row is. */
export interface RowOwner extends Owner {
  /**
   * The owner's cluster, if it is known: several clusters may share a database. In one cluster, a description belongs to one
   * object at a time: a row that is recorded for it under another UID belongs to the object's predecessor.
   */
  cluster?: Cluster;
  /** The owner's namespace, for entries of the allow-list that name one. */
  namespace?: string;
}

/** What a program gives for one row. */
export interface RowInputs {
  /** `table` or `schema.table`, taken literally; it must be on the allow-list and have a unique key column. */
  table: string;
  /** The one column, with its value, that identifies the row: `{ id: "default/sample-student" }`. */
  key: Record<string, string>;
  /** The other columns that are written; columns that are not named here are left to their defaults and to others. */
  values: Record<string, ColumnValue>;
  /** For whom the row is; another owner's row is refused. */
  owner: RowOwner;
}

/** What the state records of one row. `values` are as given where the database says they are equal, else as found. */
export interface RowOutputs extends RowInputs {
  /** The table that `table` meant when the row was made, whatever the `search_path` is later. */
  location: TableLocation;
  /**
   * Made by each creation and recorded in the database as well. When a row was left and taken again, the delete of
   * the former resource, which may come late, finds another incarnation and leaves the row.
   */
  incarnation: string;
  /** What a refresh found changed. */
  drift?: FieldDrift[];
}

/** The column that identifies a row, and its value there. */
export interface RowKey {
  column: string;
  value: string;
}

/** What names a row in its table. */
export type Keyed = Pick<RowInputs, "key">;

export function keyOf({ key }: Keyed): RowKey {
  const [[column, value] = ["", ""]] = Object.entries(key);
  return { column, value };
}
