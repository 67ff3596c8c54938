import { takeoverSeconds } from "./configuration";
import { sqlStateOf } from "./errors";
import { type Connection, withConnection } from "./pool";

/*
 * Which clusters keep rows in this database, and when each was last seen. A rebuilt cluster has another UID than the one
 * whose objects made the rows. Only time can tell it from a second cluster that shares the database: the operator of a
 * living one records a heartbeat every few minutes. A cluster that never did is not taken for gone.
 */

export const CREATE_CLUSTERS = `CREATE TABLE IF NOT EXISTS kindstack_ownership.clusters (
  uid text PRIMARY KEY,
  seen_at timestamptz NOT NULL
)`;

const LONGEST_HEARTBEAT_MS = 300_000;
/** So many heartbeats may fail before the cluster counts as gone. */
const HEARTBEATS_PER_PERIOD = 12;

/** When this process last recorded a cluster's heartbeat, by `performance.now()`. */
const recordedAt = new Map<string, number>();

/**
 * Tells other clusters that share the database that this one lives, if that is due: cheap to call often.
 *
 * @param cluster its UID
 * @throws ClassifiedError when the database cannot be asked
 */
export async function recordHeartbeat(cluster: string): Promise<void> {
  const everyMs = Math.min(
    LONGEST_HEARTBEAT_MS,
    ((takeoverSeconds(process.env) || Number.POSITIVE_INFINITY) * 1000) / HEARTBEATS_PER_PERIOD,
  );
  const now = performance.now();
  if (now - (recordedAt.get(cluster) ?? Number.NEGATIVE_INFINITY) < everyMs) return;
  await withConnection(async (connection) => {
    try {
      await writeHeartbeat(connection, cluster);
    } catch (error) {
      if (sqlStateOf(error) === "3F000") return; // no row of this database ever had an owner
      if (sqlStateOf(error) !== "42P01") throw error;
      await connection.query(CREATE_CLUSTERS); // records of a version that had no such table
      await writeHeartbeat(connection, cluster);
    }
  }).catch((error: unknown) => {
    // Without the right to it, rows of this cluster are never taken over, nor does it take any.
    if (sqlStateOf(error) !== "42501") throw error;
  });
  recordedAt.set(cluster, now);
}

async function writeHeartbeat(connection: Connection, cluster: string): Promise<void> {
  await connection.query(
    `INSERT INTO kindstack_ownership.clusters (uid, seen_at) VALUES ($1, now())
     ON CONFLICT (uid) DO UPDATE SET seen_at = excluded.seen_at`,
    [cluster],
  );
}

/** Forgets which heartbeats this process has recorded, as a new process would. */
export function forgetHeartbeats(): void {
  recordedAt.clear();
}

/** What is known of another cluster that keeps rows in the database. */
export interface OtherCluster {
  /** Without a sign of it for so long, its rows are taken over. */
  takeoverSeconds: number;
  /** Whether that time is over. */
  isGone: boolean;
}

/** @returns `undefined` when its rows are never taken over: it has no heartbeat, or the setting says so */
export async function otherCluster(connection: Connection, uid: string): Promise<OtherCluster | undefined> {
  const seconds = takeoverSeconds(process.env);
  if (seconds === 0 || !(await areClustersKnown(connection))) return undefined;
  const { rows } = await connection.query<{ is_gone: boolean }>(
    `SELECT seen_at < now() - make_interval(secs => $2) AS is_gone FROM kindstack_ownership.clusters WHERE uid = $1`,
    [uid, seconds],
  );
  return rows[0] && { takeoverSeconds: seconds, isGone: rows[0].is_gone };
}

/** Whether the table is there, and may be read. */
export async function areClustersKnown(connection: Connection): Promise<boolean> {
  const { rows } = await connection.query<{ readable: boolean | null }>(
    "SELECT has_table_privilege(to_regclass('kindstack_ownership.clusters'), 'SELECT') AS readable",
  );
  return rows[0]?.readable === true;
}
