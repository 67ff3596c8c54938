import { escapeLiteral } from "pg";
import { errorMessageOf, RetryableError } from "../errors";
import type { Owner } from "../kubernetes/ownership";
import { type ResolvedTable, refuseTable } from "./allow-list";
import { areClustersKnown, CREATE_CLUSTERS, type OtherCluster, otherCluster } from "./clusters";
import { takeoverSeconds } from "./configuration";
import { sqlStateOf } from "./errors";
import { formatTableName, quoteTableName, type TableName } from "./identifier";
import { type Connection, type TransactionOptions, withConnection, withTransaction } from "./pool";

/*
 * The books of who owns which row. A row cannot carry its owner's mark, as its columns are the user's; so the mark is a
 * record in a table of Kindstack's own, written in the same transaction as the row. Its schema must not have a name that a
 * role might have: PostgreSQL looks for tables first in the schema that is called like the user.
 */

const CREATE_SCHEMA = "CREATE SCHEMA IF NOT EXISTS kindstack_ownership";
const CREATE_TABLE = `CREATE TABLE IF NOT EXISTS kindstack_ownership.rows (
  table_schema text NOT NULL,
  table_name text NOT NULL,
  key text NOT NULL,
  owner text NOT NULL,
  description text NOT NULL,
  incarnation text NOT NULL,
  PRIMARY KEY (table_schema, table_name, key)
)`;
/** After a crash, each object whose update was cut off is asked for what it has. */
const CREATE_INDEX = "CREATE INDEX IF NOT EXISTS rows_by_owner ON kindstack_ownership.rows (owner)";

/** An advisory lock's number: it keeps two operators from creating the table at the same moment. */
const CREATION_LOCK = 7_046_029_254_386_353n;
/** Who waits for it waits for others of its kind, which need as long as a few statements. */
const CREATION = { lockTimeoutMs: 5_000 };

/**
 * Runs `work` in a transaction in which the ownership records can be used; the first use in a database creates their
 * table.
 *
 * @throws RetryableError `OwnershipTableMissing` with the SQL for an administrator when it may not be created
 */
export async function withOwnershipRecords<T>(
  work: (connection: Connection) => Promise<T>,
  options?: TransactionOptions,
): Promise<T> {
  try {
    return await withTransaction(work, options);
  } catch (error) {
    if (!isOwnershipTableMissing(error)) throw error;
    await createOwnershipTable();
    return withTransaction(work, options);
  }
}

/** For whom a row is. */
export interface RowOwner extends Owner {
  /**
   * The cluster that the owner is in, if it is known: several may share a database. In one cluster the owner's description
   * is that of one object at a time, so that a row recorded for it under another UID is its predecessor's.
   */
  cluster?: string;
}

/** Who wants a row. */
export interface Claim {
  key: string;
  owner: RowOwner;
  incarnation: string;
}

/** An owner as the records describe it. */
function recordedDescription({ description, cluster }: RowOwner): string {
  return cluster === undefined ? description : `${description} in cluster ${cluster}`;
}

/** A row's owner, as the records have it. */
export interface OwnershipRecord {
  owner: string;
  description: string;
  incarnation: string;
}

/** Whether a record is of the object itself, or of a former object of its name in the same cluster. */
export function isRecordOf(record: Pick<OwnershipRecord, "owner" | "description">, owner: RowOwner): boolean {
  return (
    record.owner === owner.uid || (owner.cluster !== undefined && record.description === recordedDescription(owner))
  );
}

/**
 * Records who has the rows with these keys, and locks the records until the transaction's end: two who want the same row
 * come one after the other, and the second sees what the first did.
 *
 * A record is taken over from a former owner by a claim that knows its incarnation, which is in one state only, and by
 * one for the object of the same name in the same cluster ({@link isRecordOf}), or in one that is gone.
 *
 * @returns the table that the name means, and the keys that had no record yet
 * @throws RetryableError `RowConflict` when a row has another owner, `TableMissing`; TerminalError `TableNotAllowed`
 */
export async function claimRows(
  connection: Connection,
  table: TableName,
  claims: readonly Claim[],
): Promise<{ table: ResolvedTable; newKeys: ReadonlySet<string> }> {
  const { rows } = await connection.query<{
    schema: string;
    name: string;
    visible: boolean;
    key: string | null;
    is_new: boolean | null;
  }>(
    `WITH target AS (
       SELECT nspname, relname, pg_table_is_visible(pg_class.oid) AS visible
       FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
       WHERE pg_class.oid = $1::regclass
     ), claimed AS (
       INSERT INTO kindstack_ownership.rows AS held (table_schema, table_name, key, owner, description, incarnation)
       SELECT nspname, relname, wanted.* FROM target, unnest($2::text[], $3::text[], $4::text[], $5::text[]) AS wanted
       ON CONFLICT (table_schema, table_name, key) DO UPDATE
       SET owner = excluded.owner, description = excluded.description, incarnation = excluded.incarnation
       WHERE held.owner = excluded.owner OR held.incarnation = excluded.incarnation
         OR held.description = excluded.description AND held.description = ANY($6::text[])
       RETURNING key, xmax = 0 AS is_new -- a record that was there before carries the lock of this update
     )
     SELECT nspname AS schema, relname AS name, visible, key, is_new FROM target LEFT JOIN claimed ON true`,
    [
      quoteTableName(table),
      claims.map(({ key }) => key),
      claims.map(({ owner }) => owner.uid),
      claims.map(({ owner }) => recordedDescription(owner)),
      claims.map(({ incarnation }) => incarnation),
      claims.flatMap(({ owner }) => (owner.cluster === undefined ? [] : [recordedDescription(owner)])),
    ],
  );
  const [target] = rows;
  if (target === undefined) throw new RetryableError("TableMissing", `${formatTableName(table)} was dropped`);
  refuseTable(target);
  const claimed = new Set(rows.map(({ key }) => key));
  const refused = claims.filter(({ key }) => !claimed.has(key));
  const takenOver = refused.length > 0 ? await takeOver(connection, target, refused) : claimed;
  const other = refused.find(({ key }) => !takenOver.has(key));
  if (other !== undefined) {
    const record = await findRecord(connection, target, other.key);
    throw rowConflict(target, other.key, await describeHolder(connection, target, other, record));
  }
  return { table: target, newKeys: new Set(rows.flatMap(({ key, is_new }) => (is_new && key !== null ? [key] : []))) };
}

/**
 * Takes over the records of objects of the same names in clusters that are gone.
 *
 * @returns the keys
 */
async function takeOver(
  connection: Connection,
  { schema, name }: { schema: string; name: string },
  claims: readonly Claim[],
): Promise<Set<string | null>> {
  const seconds = takeoverSeconds(process.env);
  const known = claims.filter(({ owner }) => owner.cluster !== undefined);
  if (seconds === 0 || known.length === 0 || !(await areClustersKnown(connection))) return new Set();
  const { rows } = await connection.query<{ key: string }>(
    `UPDATE kindstack_ownership.rows AS held
     SET owner = wanted.owner, description = wanted.description, incarnation = wanted.incarnation
     FROM kindstack_ownership.clusters AS former,
       unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::text[])
         AS wanted(key, object, owner, description, incarnation)
     WHERE held.table_schema = $1 AND held.table_name = $2 AND held.key = wanted.key
       AND held.description = wanted.object || ' in cluster ' || former.uid
       AND former.seen_at < now() - make_interval(secs => $8)
     RETURNING held.key`,
    [
      schema,
      name,
      known.map(({ key }) => key),
      known.map(({ owner }) => owner.description),
      known.map(({ owner }) => owner.uid),
      known.map(({ owner }) => recordedDescription(owner)),
      known.map(({ incarnation }) => incarnation),
      seconds,
    ],
  );
  return new Set(rows.map(({ key }) => key));
}

/** A row of another owner is in the way; it may be removed without an event, so the update is retried. */
export function rowConflict(table: TableName, key: string, problem: string): RetryableError {
  return new RetryableError("RowConflict", `row ${JSON.stringify(key)} of table ${formatTableName(table)} ${problem}`);
}

/** Who has a row that another owner wants, and what to do about it. */
export async function describeHolder(
  connection: Connection,
  table: { schema: string; name: string },
  { key, owner }: Pick<Claim, "key" | "owner">,
  record: OwnershipRecord | undefined,
): Promise<string> {
  if (record === undefined) return "belonged to another owner a moment ago";
  const holder = `belongs to ${record.description} (UID ${record.owner})`;
  const isNamesake = `${record.description} in cluster `.startsWith(`${owner.description} in cluster `);
  if (!isNamesake) return `${holder}; delete that object, or use another table`;
  const [uid, schema, name, id] = [owner.uid, table.schema, table.name, key].map(escapeLiteral);
  const cluster = await formerCluster(connection, owner, record);
  // Without times: a message that changes with each try would be an Event each time.
  const takeover = cluster && `it is taken over ${cluster.takeoverSeconds} s after the last sign of that cluster; `;
  return (
    `${holder}; ${takeover ?? ""}if that object is gone, transfer the row: UPDATE kindstack_ownership.rows SET owner = ${uid} ` +
    `WHERE table_schema = ${schema} AND table_name = ${name} AND key = ${id}`
  );
}

/** What is known of the cluster of a record, if that is of an object of the same name as the owner's in another one. */
export async function formerCluster(
  connection: Connection,
  owner: RowOwner,
  { description }: Pick<OwnershipRecord, "description">,
): Promise<OtherCluster | undefined> {
  const start = `${owner.description} in cluster `;
  if (owner.cluster === undefined || !description.startsWith(start)) return undefined;
  return otherCluster(connection, description.slice(start.length));
}

/** Forgets the row, if this incarnation has it. */
export async function releaseRow(
  connection: Connection,
  { table, key, incarnation }: { table: { schema: string; name: string }; key: string; incarnation: string },
): Promise<void> {
  await connection.query(
    "DELETE FROM kindstack_ownership.rows WHERE table_schema = $1 AND table_name = $2 AND key = $3 AND incarnation = $4",
    [table.schema, table.name, key, incarnation],
  );
}

/** All records of an owner; none when no row in this database ever had an owner. */
export async function recordsOf(
  connection: Connection,
  uid: string,
): Promise<{ schema: string; name: string; key: string; incarnation: string }[]> {
  if (!(await hasRecords(connection))) return [];
  const { rows } = await connection.query<{ schema: string; name: string; key: string; incarnation: string }>(
    "SELECT table_schema AS schema, table_name AS name, key, incarnation FROM kindstack_ownership.rows WHERE owner = $1",
    [uid],
  );
  return rows;
}

/** The owner of a row; `undefined` when it has none, or no row in this database ever had one. */
export async function findRecord(
  connection: Connection,
  { schema, name }: { schema: string; name: string },
  key: string,
): Promise<OwnershipRecord | undefined> {
  if (!(await hasRecords(connection))) return undefined;
  const { rows } = await connection.query<OwnershipRecord>(
    "SELECT owner, description, incarnation FROM kindstack_ownership.rows WHERE table_schema = $1 AND table_name = $2 AND key = $3",
    [schema, name, key],
  );
  return rows[0];
}

async function hasRecords(connection: Connection): Promise<boolean> {
  const { rows } = await connection.query<{ exists: boolean }>(
    "SELECT to_regclass('kindstack_ownership.rows') IS NOT NULL AS exists",
  );
  return rows[0]?.exists === true;
}

function isOwnershipTableMissing(error: unknown): boolean {
  // The message comes in the server's language, the name in it does not.
  return sqlStateOf(error) === "42P01" && errorMessageOf(error).includes('"kindstack_ownership.rows"');
}

async function createOwnershipTable(): Promise<void> {
  try {
    await withTransaction(async (connection) => {
      await connection.query("SELECT pg_advisory_xact_lock($1)", [CREATION_LOCK]);
      const { rows } = await connection.query<{ exists: boolean }>(
        "SELECT to_regnamespace('kindstack_ownership') IS NOT NULL AS exists",
      );
      // Even IF NOT EXISTS asks for the permission to create a schema.
      if (!rows[0]?.exists) await connection.query(CREATE_SCHEMA);
      for (const statement of [CREATE_TABLE, CREATE_INDEX, CREATE_CLUSTERS]) await connection.query(statement);
    }, CREATION);
  } catch (error) {
    if (sqlStateOf(error) !== "42501") throw error;
    const user = await withConnection((connection) =>
      connection.query<{ name: string }>("SELECT quote_ident(current_user) AS name"),
    );
    const role = user.rows[0]?.name;
    throw new RetryableError(
      "OwnershipTableMissing",
      `${errorMessageOf(error)}: Kindstack may not create its table of row owners; an administrator must run: ` +
        `${[CREATE_SCHEMA, CREATE_TABLE, CREATE_INDEX, CREATE_CLUSTERS].join("; ").replace(/\s+/g, " ")}; ` +
        `GRANT USAGE ON SCHEMA kindstack_ownership TO ${role}; ` +
        `GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA kindstack_ownership TO ${role};`,
      { cause: error },
    );
  }
}
