import { escapeLiteral } from "pg";
import { RetryableError } from "../errors";
import { formatTableName, type TableName } from "./identifier";
import { SERVER, tableId } from "./placement";
import type { Connection } from "./pool";
import { type Keyed, keyOf, type RowInputs, type RowOutputs, type RowOwner } from "./row-inputs";
import type { Table } from "./tables";

interface OwnershipRecord {
  table_id: string;
  owner: string;
  description: string;
  cluster: string | null;
  cluster_uid: string | null;
  /** Clusters of the same name that had the row before. */
  former_cluster_uids: string[];
  incarnation: string;
}

/**
 * Records who has these rows, and locks the records until the transaction's end: two who want the same row come one after
 * the other, and the second sees what the first did.
 *
 * A record is taken over from a former owner by a row with its incarnation, which is in one state only, and by one for the
 * object of the same name in the same cluster, or in a cluster that has taken the name over. A cluster that has lost the row
 * to another one of its name does not take it back: both may live.
 *
 * @returns the keys that had no record yet
 * @throws RetryableError `RowConflict` when a row has another owner
 */
export async function claimRows(
  table: Table,
  id: string,
  wanted: readonly Pick<RowOutputs, "key" | "owner" | "incarnation">[],
): Promise<ReadonlySet<string>> {
  const { connection } = table;
  const { rows } = await connection.query<{ key: string; is_new: boolean }>(
    `INSERT INTO kindstack_ownership.records AS held (table_id, key, owner, description, cluster, cluster_uid, incarnation)
     SELECT $1, wanted.* FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[]) AS wanted
     ON CONFLICT (table_id, key) DO UPDATE SET
       owner = excluded.owner, description = excluded.description, incarnation = excluded.incarnation,
       cluster = excluded.cluster, cluster_uid = excluded.cluster_uid,
       former_cluster_uids = CASE WHEN held.cluster_uid IS DISTINCT FROM excluded.cluster_uid
         THEN array_remove(array_remove(held.former_cluster_uids || held.cluster_uid, excluded.cluster_uid), NULL)
         ELSE held.former_cluster_uids END
     WHERE held.owner = excluded.owner
       OR (held.incarnation = excluded.incarnation OR held.description = excluded.description AND
           (held.cluster_uid = excluded.cluster_uid OR held.cluster = excluded.cluster))
         AND (excluded.cluster_uid = ANY(held.former_cluster_uids)) IS NOT TRUE
     RETURNING key, xmax = 0 AS is_new -- a record that was there before carries the lock of this update`,
    [
      id,
      wanted.map((row) => keyOf(row).value),
      wanted.map(({ owner }) => owner.uid),
      wanted.map(({ owner }) => owner.description),
      wanted.map(({ owner }) => owner.cluster?.name ?? null),
      wanted.map(({ owner }) => owner.cluster?.uid ?? null),
      wanted.map(({ incarnation }) => incarnation),
    ],
  );
  const claimed = new Set(rows.map(({ key }) => key));
  const refused = wanted.find((row) => !claimed.has(keyOf(row).value));
  if (refused !== undefined) {
    throw rowConflict(table, refused, describeHolder(refused, await findRecord(table, refused)));
  }
  return new Set(rows.flatMap(({ key, is_new }) => (is_new ? [key] : [])));
}

/** The same rule, for one record, without a claim. @param owners UIDs under which the row may be recorded */
export function mayClaim(
  record: OwnershipRecord,
  owner: RowOwner,
  owners: readonly string[],
  incarnation: string | undefined,
): boolean {
  if (owners.includes(record.owner)) return true;
  const { name, uid } = owner.cluster ?? {};
  if (uid !== undefined && record.former_cluster_uids.includes(uid)) return false;
  const isSameCluster = uid !== undefined && (record.cluster_uid === uid || record.cluster === name);
  return record.incarnation === incarnation || (record.description === owner.description && isSameCluster);
}

/** Why a row that has no record is refused, and how to adopt it. @param creation SQL that makes the tables of records */
export function describeUnmanaged(
  { oid, schema, name }: Table,
  row: Pick<RowInputs, "key" | "owner">,
  creation = "",
): string {
  const [place, title] = [schema, name].map(escapeLiteral);
  const { uid, description, cluster } = row.owner;
  // With its cluster, the record is the object's also where a preview made this, which knows no UID of a new object.
  const record = [keyOf(row).value, uid, description, cluster?.name, cluster?.uid].map((value) =>
    value === undefined ? "NULL" : escapeLiteral(value),
  );
  const adoption =
    `WITH known AS (INSERT INTO kindstack_ownership.tables (server, oid, table_schema, table_name) ` +
    `VALUES (${SERVER.replace(/\s+/g, " ")}, ${oid}, ${place}, ${title}) ` +
    "ON CONFLICT (server, oid) DO UPDATE SET table_name = excluded.table_name RETURNING id) " +
    "INSERT INTO kindstack_ownership.records (table_id, key, owner, description, cluster, cluster_uid, incarnation) " +
    `SELECT id, ${record.join(", ")}, gen_random_uuid() FROM known`;
  return `belongs to no object: others made it, or an object released it. Use another table, or let the object have the row, which overwrites it: ${creation}${adoption}`;
}

/** A row of another owner is in the way; it may be removed without an event, so the update is retried. */
export function rowConflict(table: TableName, row: Keyed, problem: string): RetryableError {
  const { value } = keyOf(row);
  return new RetryableError(
    "RowConflict",
    `row ${JSON.stringify(value)} of table ${formatTableName(table)} ${problem}`,
  );
}

/** Who has a row that another owner wants, and what to do about it. */
export function describeHolder(row: Pick<RowInputs, "key" | "owner">, record: OwnershipRecord | undefined): string {
  if (record === undefined) return "belonged to another owner a moment ago";
  const { owner } = row;
  const cluster = record.cluster === null ? "" : ` in cluster ${record.cluster}`;
  const holder = `belongs to ${record.description}${cluster} (UID ${record.owner})`;
  if (record.description !== owner.description)
    return `${holder}; use another table, or delete that object with the deletion policy Orphan, which keeps the row`;
  const [uid, key] = [owner.uid, keyOf(row).value].map(escapeLiteral);
  const transfer = `UPDATE kindstack_ownership.records SET owner = ${uid} WHERE table_id = ${record.table_id} AND key = ${key}`;
  const isDisplaced = owner.cluster !== undefined && record.former_cluster_uids.includes(owner.cluster.uid);
  const advice = isDisplaced
    ? `a cluster with the UID ${record.cluster_uid} has taken over the name ${record.cluster} and this row; give each ` +
      "cluster a name of its own (KINDSTACK_CLUSTER), or, if that cluster is gone, transfer the row"
    : "if that object is gone, transfer the row";
  return `${holder}; ${advice}: ${transfer}`;
}

export async function findRecord(table: Table, row: Keyed): Promise<OwnershipRecord | undefined> {
  const id = await tableId(table);
  const { rows } = await table.connection.query<OwnershipRecord>(
    `SELECT table_id, owner, description, cluster, cluster_uid, former_cluster_uids, incarnation
     FROM kindstack_ownership.records WHERE table_id = $1 AND key = $2`,
    [id ?? null, keyOf(row).value],
  );
  return rows[0];
}

/** Those of these rows that are not recorded for their owners, by their index. */
export async function findUnrecorded(table: Table, rows: readonly (Keyed & { uid: string })[]): Promise<number[]> {
  const id = await tableId(table);
  const { rows: found } = await table.connection.query<{ position: string }>(
    `SELECT position FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS wanted(key, owner, position)
     WHERE NOT EXISTS (
       SELECT FROM kindstack_ownership.records AS held
       WHERE held.table_id = $1 AND held.key = wanted.key AND held.owner = wanted.owner
     )`,
    [id ?? null, rows.map((row) => keyOf(row).value), rows.map(({ uid }) => uid)],
  );
  return found.map(({ position }) => Number(position) - 1);
}

/** Forgets the row that this incarnation has. */
export async function releaseRow(connection: Connection, incarnation: string): Promise<void> {
  await connection.query("DELETE FROM kindstack_ownership.records WHERE incarnation = $1", [incarnation]);
}
