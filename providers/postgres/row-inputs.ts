import type { RowOwner } from "./ownership";

/** What a column can be given; PostgreSQL turns it into the column's type. */
export type ColumnValue = string | number | boolean | null;

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
