import { sqlStateOf } from "./errors";
import type { TableLocation } from "./identifier";
import { type Connection, withTransaction } from "./pool";
import { keyOf, type RowOutputs, type RowOwner } from "./row-inputs";

/*
 * Which clusters keep rows in this database, and when each was last seen. A rebuilt cluster has another UID than the one
 * whose objects made the rows. Only time can tell it from a second cluster that shares the database: the operator of a
 * living one records a heartbeat every minute. A cluster that never did is not taken for gone.
 */

const takeoverSeconds = () => Number(process.env.KINDSTACK_POSTGRES_TAKEOVER_SECONDS ?? 3600);

export const CREATE_CLUSTERS = `CREATE TABLE IF NOT EXISTS kindstack_ownership.clusters (
  uid text PRIMARY KEY,
  seen_at timestamptz NOT NULL
)`;

/**
 * Tells other clusters that share the database that this one lives.
 *
 * @param cluster its UID
 * @throws ClassifiedError when the database cannot be asked
 */
export async function recordHeartbeat(cluster: string): Promise<void> {
  await withTransaction((connection) => writeHeartbeat(connection, cluster))
    .catch((error: unknown) => {
      if (sqlStateOf(error) === "3F000") return undefined; // no row of this database ever had an owner
      if (sqlStateOf(error) !== "42P01") throw error;
      // Records of a version that had no such table.
      return withTransaction(async (connection) => {
        await connection.query(CREATE_CLUSTERS);
        await writeHeartbeat(connection, cluster);
      });
    })
    .catch((error: unknown) => {
      // Without the right to it, rows of this cluster are never taken over, nor does it take any.
      if (sqlStateOf(error) !== "42501") throw error;
    });
}

async function writeHeartbeat(connection: Connection, cluster: string): Promise<void> {
  await connection.query(
    `INSERT INTO kindstack_ownership.clusters (uid, seen_at) VALUES ($1, now())
     ON CONFLICT (uid) DO UPDATE SET seen_at = excluded.seen_at`,
    [cluster],
  );
}

/** An owner as the records describe it. */
export function recordedDescription({ description, cluster }: RowOwner): string {
  return cluster === undefined ? description : `${description} in cluster ${cluster}`;
}

/**
 * The cluster of a record that is of an object with the owner's name in another cluster.
 *
 * @param description that of the record
 * @returns after how long without a sign of it its rows are taken over, and whether that time is over; `undefined` for
 *   other records, and when its rows are never taken over: it has no heartbeat, or the setting says so
 */
export async function formerCluster(
  connection: Connection,
  owner: RowOwner,
  description: string,
): Promise<{ takeoverSeconds: number; isGone: boolean } | undefined> {
  const seconds = takeoverSeconds();
  if (owner.cluster === undefined || seconds === 0 || !(await areClustersKnown(connection))) return undefined;
  const { rows } = await connection.query<{ is_gone: boolean }>(
    `SELECT seen_at < now() - make_interval(secs => $3) AS is_gone FROM kindstack_ownership.clusters
     WHERE $1 || ' in cluster ' || uid = $2`,
    [owner.description, description, seconds],
  );
  return rows[0] && { takeoverSeconds: seconds, isGone: rows[0].is_gone };
}

/**
 * Takes over the records of objects of the same names in clusters that are gone.
 *
 * @returns the keys
 */
export async function takeOver(
  connection: Connection,
  { schema, name }: TableLocation,
  wanted: readonly Pick<RowOutputs, "key" | "owner" | "incarnation">[],
): Promise<Set<string>> {
  const known = wanted.filter(({ owner }) => owner.cluster !== undefined);
  const seconds = known.length > 0 ? takeoverSeconds() : 0;
  if (seconds === 0 || !(await areClustersKnown(connection))) return new Set();
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
      known.map((row) => keyOf(row).value),
      known.map(({ owner }) => owner.description),
      known.map(({ owner }) => owner.uid),
      known.map(({ owner }) => recordedDescription(owner)),
      known.map(({ incarnation }) => incarnation),
      seconds,
    ],
  );
  return new Set(rows.map(({ key }) => key));
}

/** Whether the table is there, and may be read. */
async function areClustersKnown(connection: Connection): Promise<boolean> {
  const { rows } = await connection.query<{ readable: boolean | null }>(
    "SELECT has_table_privilege(to_regclass('kindstack_ownership.clusters'), 'SELECT') AS readable",
  );
  return rows[0]?.readable === true;
}
