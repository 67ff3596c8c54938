import { RetryableError } from "../errors";
import { formatTableName, quoteTableName, type TableLocation, type TableName } from "./identifier";
import type { Connection } from "./pool";

/** What is known of a column's type. */
export interface Column {
  /** The type without its length or precision, ready to stand in a statement. */
  type: string;
  /** With them, as the table declares it. */
  declared: string;
  /** Whether the type has an equality of its own; `json`, `xml` and `point` have none. */
  hasEquality: boolean;
  /** Whether its values are dates or times, which `now` may name. */
  isTemporal: boolean;
}

/** A table, a view or a partitioned table, as the database has it now. */
export interface Table extends TableLocation {
  /** What it was found with, and is asked about its rows with. */
  connection: Connection;
  /** Its identity, which a rename and a move to another schema leave as it is. */
  oid: string;
  /** Whether the name alone, without its schema, means it. */
  visible: boolean;
  /** The requested columns that the table has, by name. */
  columns: Record<string, Column>;
}

/** An operator `=` is an equality where an index may rely on it; that of boxes compares their areas. */
const HAS_EQUALITY = `typtype = 'e' OR EXISTS (
  SELECT FROM pg_opclass JOIN pg_am ON pg_am.oid = opcmethod
  WHERE opcdefault AND amname IN ('btree', 'hash') AND opcintype IN (
    SELECT pg_type.oid UNION ALL
    SELECT casttarget FROM pg_cast WHERE castsource = pg_type.oid AND castmethod = 'b' AND castcontext = 'i'
  ))`;

/** Whether a type has others within it: a domain, an array, a range. */
const IS_MADE_OF_OTHERS = "typtype IN ('d', 'r', 'm') OR typcategory = 'A' AND typelem <> 0";

/** Of a type's single values. */
type ValueType = Pick<Column, "hasEquality" | "isTemporal">;

/** PostgreSQL's own types have these OIDs in every database, and never change: looking them up costs more than a row's write. */
const LAST_FIXED_OID = 9_999;
const fixedTypes = new Map<number, ValueType>();

async function valueTypesOf(connection: Connection, ids: ReadonlySet<number>): Promise<ReadonlyMap<number, ValueType>> {
  const unknown = [...ids].filter((oid) => !fixedTypes.has(oid));
  if (unknown.length === 0) return fixedTypes;
  const known = new Map(fixedTypes);
  const { rows } = await connection.query<ValueType & { oid: string }>(
    `WITH RECURSIVE within AS (
       SELECT given, given AS oid FROM unnest($1::oid[]) AS given
       UNION
       SELECT given, CASE
         WHEN typtype = 'd' THEN typbasetype
         WHEN typtype IN ('r', 'm') THEN (SELECT rngsubtype FROM pg_range WHERE pg_type.oid IN (rngtypid, rngmultitypid))
         ELSE typelem END
       FROM within JOIN pg_type USING (oid) WHERE ${IS_MADE_OF_OTHERS}
     )
     SELECT given::text AS oid, ${HAS_EQUALITY} AS "hasEquality", typcategory = 'D' AS "isTemporal"
     FROM within JOIN pg_type USING (oid) WHERE NOT (${IS_MADE_OF_OTHERS})`,
    [unknown],
  );
  for (const { oid: text, ...type } of rows) {
    const oid = Number(text);
    known.set(oid, type);
    if (oid <= LAST_FIXED_OID) fixedTypes.set(oid, type);
  }
  return known;
}

export async function findTable(
  connection: Connection,
  table: TableName | { oid: string },
  columns: readonly string[] = [],
): Promise<Table | undefined> {
  const isOid = "oid" in table;
  const { rows } = await connection.query<FoundTable>(
    `SELECT pg_class.oid::text AS oid, nspname AS schema, relname AS name, pg_table_is_visible(pg_class.oid) AS visible, (
       SELECT jsonb_agg(jsonb_build_object('name', attname, 'oid', atttypid::bigint,
         'type', format_type(atttypid, -1), 'declared', format_type(atttypid, atttypmod)))
       FROM pg_attribute WHERE attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped AND attname = ANY($2::name[])
     ) AS columns
     FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
     WHERE pg_class.oid = ${isOid ? "$1::oid" : "to_regclass($1)"}`,
    [isOid ? table.oid : quoteTableName(table), columns],
  );
  if (rows[0] === undefined) return undefined;
  const { columns: found, ...location } = rows[0];
  const types = await valueTypesOf(connection, new Set(found?.map(({ oid }) => oid)));
  const typed = (found ?? []).flatMap(({ name, oid, ...column }) => {
    const type = types.get(oid);
    return type === undefined ? [] : [[name, { ...column, ...type }] as const];
  });
  return { ...location, columns: Object.fromEntries(typed), connection };
}

interface FoundTable extends Omit<Table, "connection" | "columns"> {
  columns: ({ name: string; oid: number } & Pick<Column, "type" | "declared">)[] | null;
}

/** Whether a table has the rows of another one: as a view of it, or because it is a partition. */
export async function containsTable(connection: Connection, oid: string, within: string): Promise<boolean> {
  const { rows } = await connection.query<{ contains: boolean }>(
    `WITH RECURSIVE below AS (
       SELECT $1::oid AS oid
       UNION
       SELECT next.oid FROM below CROSS JOIN LATERAL (
         SELECT inhrelid AS oid FROM pg_inherits WHERE inhparent = below.oid
         UNION ALL
         SELECT refobjid FROM pg_rewrite JOIN pg_depend ON classid = 'pg_rewrite'::regclass AND objid = pg_rewrite.oid
         WHERE ev_class = below.oid AND refclassid = 'pg_class'::regclass
       ) AS next
     )
     SELECT EXISTS (SELECT FROM below WHERE oid = $2::oid) AS contains`,
    [oid, within],
  );
  return rows[0]?.contains === true;
}

/** It may be created at any time, so the update is retried. */
export function tableMissing(table: TableName): RetryableError {
  const name = formatTableName(table);
  return new RetryableError("TableMissing", `relation "${name}" does not exist`, { dependency: `table ${name}` });
}

/** In the database's own words for it. */
export function columnMissing({ name }: TableName, column: string): RetryableError {
  return new RetryableError("ColumnMissing", `column "${column}" of relation "${name}" does not exist`);
}

type Event = "INSERT" | "UPDATE" | "DELETE";

/** In `pg_trigger.tgtype`, and in `pg_rewrite.ev_type`. */
const EVENT_CODES: Record<Event, { trigger: number; rule: string }> = {
  INSERT: { trigger: 4, rule: "3" },
  UPDATE: { trigger: 16, rule: "2" },
  DELETE: { trigger: 8, rule: "4" },
};

/** What may change or suppress the writes of rows, for people: `trigger "soft_delete", rule "audit", row security`. */
export async function describeHooks({ connection, oid }: Table, events: readonly Event[]): Promise<string> {
  const codes = events.map((event) => EVENT_CODES[event]);
  const { rows } = await connection.query<{ hook: string }>(
    `WITH hooked AS (SELECT $1::oid AS oid UNION SELECT inhrelid FROM pg_inherits WHERE inhparent = $1::oid)
     SELECT DISTINCT 'trigger ' || quote_ident(tgname) AS hook FROM pg_trigger JOIN hooked ON tgrelid = hooked.oid
     WHERE NOT tgisinternal AND tgenabled <> 'D' AND tgtype & 1 = 1 AND tgtype & $2 <> 0
     UNION ALL
     SELECT 'rule ' || quote_ident(rulename) FROM pg_rewrite WHERE ev_class = $1::oid AND ev_type = ANY($3)
     UNION ALL
     SELECT 'row security' WHERE row_security_active($1::oid)`,
    [oid, codes.reduce((sum, { trigger }) => sum + trigger, 0), codes.map(({ rule }) => rule)],
  );
  return rows.map(({ hook }) => hook).join(", ");
}

/** Whether policies may hide rows of the table from the connection's user. */
export async function mayHideRows({ connection, oid }: Table): Promise<boolean> {
  const { rows } = await connection.query<{ hides: boolean }>(
    `WITH applied AS (
       SELECT polpermissive, pg_get_expr(polqual, polrelid) AS condition FROM pg_policy
       WHERE polrelid = $1::oid AND polcmd IN ('*', 'r')
         AND EXISTS (SELECT FROM unnest(polroles) AS role WHERE role = 0 OR pg_has_role(role, 'USAGE'))
     )
     SELECT row_security_active($1::oid) AND (
       EXISTS (SELECT FROM applied WHERE NOT polpermissive)
       OR NOT EXISTS (SELECT FROM applied WHERE polpermissive AND condition = 'true')
     ) AS hides`,
    [oid],
  );
  return rows[0]?.hides === true;
}
