import { takeoverSeconds } from "./configuration";
import { sqlStateOf } from "./errors";
import { type Connection, withConnection } from "./pool";

/*
 * Which clusters keep rows in this database, and when each was last seen. A rebuilt cluster has another UID than the one
 * whose objects made the rows. Only time can tell it from a second cluster that shares the database: the operator of a
 * living one announces it every few minutes. A cluster that never was announced is not taken for gone.
 */

export const CREATE_CLUSTERS = `CREATE TABLE IF NOT EXISTS kindstack_ownership.clusters (
  uid text PRIMARY KEY,
  seen_at timestamptz NOT NULL
)`;

const LONGEST_ANNOUNCEMENT_MS = 300_000;
/** So many announcements may fail before the cluster counts as gone. */
const ANNOUNCEMENTS_PER_PERIOD = 12;

/** When this process last announced a cluster, by `performance.now()`. */
const announced = new Map<string, number>();

/**
 * Tells other clusters that share the database that this one lives, if that is due: cheap to call often.
 *
 * @param cluster its UID
 * @throws ClassifiedError when the database cannot be asked
 */
export async function announceCluster(cluster: string): Promise<void> {
  const everyMs = Math.min(
    LONGEST_ANNOUNCEMENT_MS,
    ((takeoverSeconds(process.env) || Number.POSITIVE_INFINITY) * 1000) / ANNOUNCEMENTS_PER_PERIOD,
  );
  const now = performance.now();
  if (now - (announced.get(cluster) ?? Number.NEGATIVE_INFINITY) < everyMs) return;
  await withConnection(async (connection) => {
    try {
      await announce(connection, cluster);
    } catch (error) {
      if (sqlStateOf(error) === "3F000") return; // no row of this database ever had an owner
      if (sqlStateOf(error) !== "42P01") throw error;
      await connection.query(CREATE_CLUSTERS); // records of a version that had no such table
      await announce(connection, cluster);
    }
  }).catch((error: unknown) => {
    // Without the right to it, rows of this cluster are never taken over, nor does it take any.
    if (sqlStateOf(error) !== "42501") throw error;
  });
  announced.set(cluster, now);
}

async function announce(connection: Connection, cluster: string): Promise<void> {
  await connection.query(
    `INSERT INTO kindstack_ownership.clusters (uid, seen_at) VALUES ($1, now())
     ON CONFLICT (uid) DO UPDATE SET seen_at = excluded.seen_at`,
    [cluster],
  );
}

/** Forgets what this process has announced, as a new process would. */
export function forgetAnnouncements(): void {
  announced.clear();
}

/** What is known of another cluster that keeps rows in the database. */
export interface OtherCluster {
  /** Without a sign of it for so long, its rows are taken over. */
  takeoverSeconds: number;
  /** Whether that time is over. */
  isGone: boolean;
}

/** @returns `undefined` when its rows are never taken over: it was not announced, or the setting says so */
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
