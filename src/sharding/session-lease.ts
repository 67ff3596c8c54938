import type { Logger } from "pino";
import { LeaseConflict, type LeaseRecord, type LeaseStore } from "./lease-store";

/** Renews the Lease of a session. @returns the renewed Lease; `undefined` when another session holds it */
export async function renewLease(
  store: LeaseStore,
  record: LeaseRecord,
  wanted: { shards: number | undefined; leaseDurationMs: number },
): Promise<LeaseRecord | undefined> {
  try {
    return await store.update(record, { holder: record.name, ...wanted });
  } catch (error) {
    if (!(error instanceof LeaseConflict)) throw error;
  }
  // A renewal whose answer was lost, or a label that a user added, is no reason to stop.
  const current = (await store.list()).find(({ uid }) => uid === record.uid);
  if (current?.holder !== record.name) return undefined;
  return store.update(current, { holder: record.name, ...wanted }).catch((error: unknown) => {
    if (error instanceof LeaseConflict) return undefined;
    throw error;
  });
}

/**
 * Ends the session of a replica that has been silent for too long.
 *
 * @returns whether this ended it; else it was just renewed, or another replica was faster
 */
export async function expire(
  { store, logger }: { store: LeaseStore; logger: Logger },
  record: LeaseRecord,
  silentMs: number,
): Promise<boolean> {
  try {
    const dead = await store.update(record, { holder: undefined }); // from here on it cannot be renewed
    if (record.holder !== undefined) {
      logger.warn({ replica: record.name, silentMs }, "replica expired, releasing its shards");
    }
    await store.remove(dead);
    return true;
  } catch (error) {
    if (!(error instanceof LeaseConflict)) throw error;
    return false;
  }
}
