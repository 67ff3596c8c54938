import { errorMessageOf } from "../errors";
import type { Cluster } from "../kubernetes/cluster";
import type { Owner } from "../kubernetes/ownership";
import type { CheckFailure, FieldDrift } from "../provider";
import { identifierProblem, isStorableText, parseTableName, type TableLocation } from "./identifier";

/** What a column can be given; PostgreSQL turns it into the column's type. */
export type ColumnValue = string | number | boolean | null;

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
  /** The row was there before, so that the history says that it was adopted. */
  created?: false;
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

/** What is wrong with a row's inputs, property by property, as far as it can be told without a database. */
export function checkRow({ table, key = {}, values = {}, owner }: Partial<RowInputs>): CheckFailure[] {
  const failures: CheckFailure[] = [];
  const check = (property: string, reason: string | undefined) => {
    if (reason !== undefined) failures.push({ property, reason });
  };
  check("table", typeof table === "string" ? tableProblem(table) : "is required");
  const keys = Object.entries(key);
  if (keys.length !== 1) check("key", `must name exactly one column, not ${keys.length}`);
  else {
    for (const [column, value] of keys) {
      check("key", columnProblem(column));
      check(`key.${column}`, typeof value === "string" ? textProblem(value) : "must be a text");
    }
  }
  if (Object.keys(values).length === 0) check("values", "must name at least one column");
  for (const [column, value] of Object.entries(values)) {
    const isKey = Object.hasOwn(key, column);
    const isSingle = typeof value !== "object" || value === null;
    if (!isKey) check("values", columnProblem(column));
    check(`values.${column}`, isKey ? "is the key column" : isSingle ? textProblem(value) : "must be a single value");
  }
  check("owner.uid", owner?.uid ? undefined : "is required");
  return failures;
}

function tableProblem(table: string): string | undefined {
  try {
    parseTableName(table, "table");
    return undefined;
  } catch (error) {
    return errorMessageOf(error);
  }
}

function columnProblem(column: string): string | undefined {
  const problem = identifierProblem(column);
  return problem && `column ${JSON.stringify(column)}: ${problem}`;
}

function textProblem(value: unknown): string | undefined {
  return typeof value !== "string" || isStorableText(value) ? undefined : "must not contain NUL or unpaired surrogates";
}
