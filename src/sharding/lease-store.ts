import type { Logger } from "pino";
import { isApiError, type KubernetesClient, type LiveObject } from "../../providers/kubernetes/client";
import { microTime } from "../../providers/kubernetes/micro-time";

/** A Lease as it was read. */
export type LeaseRecord = ReturnType<typeof recordOf>;

/** What a write sets; without `transitions`, these stay as they are. */
interface LeaseChange extends Partial<Pick<LeaseRecord, "transitions" | "shards">> {
  holder: string | undefined;
  leaseDurationMs?: number;
}

/** Another client has written, created or removed the Lease since we read it. */
export class LeaseConflict extends Error {
  constructor(name: string, options?: ErrorOptions) {
    super(`the Lease ${name} is not what it was any more`, options);
    this.name = "LeaseConflict";
  }
}

/** Leases, as one operator's replicas share them. Every write is a compare-and-swap. */
export type LeaseStore = ReturnType<typeof kubernetesLeases>;

const LEASE = { apiVersion: "coordination.k8s.io/v1", kind: "Lease" } as const;
const LABEL = "kindstack.dev/lease";
const SHARDS_ANNOTATION = "kindstack.dev/shards";

/**
 * Leases (`coordination.k8s.io/v1`) in one namespace of the cluster.
 *
 * Patches carry the UID and the version that was read, so the API server refuses them with 409 when anything was
 * written since, and with 404 when the Lease is gone; a PUT would create it again.
 */
export function kubernetesLeases(client: KubernetesClient, namespace: string, timeoutMs: number) {
  const options = () => ({ signal: AbortSignal.timeout(timeoutMs) });
  return {
    /** All of them, as they are now: not from a cache. */
    async list(): Promise<LeaseRecord[]> {
      const { items } = await client.list(LEASE, { namespace, labelSelector: `${LABEL}=true`, ...options() });
      return items.map(recordOf);
    },
    /** @throws LeaseConflict when there is one of this name */
    async create(name: string, change: LeaseChange): Promise<LeaseRecord> {
      const annotations = change.shards !== undefined && { [SHARDS_ANNOTATION]: String(change.shards) };
      const metadata = { name, namespace, labels: { [LABEL]: "true" }, ...(annotations && { annotations }) };
      const lease = { ...LEASE, metadata, spec: specOf(change) };
      return recordOf(await client.create(lease, options()).catch(conflictOn([409], name)));
    },
    /** @throws LeaseConflict when it has changed since `record` */
    async update({ name, uid, version }: LeaseRecord, change: LeaseChange): Promise<LeaseRecord> {
      const annotations = { [SHARDS_ANNOTATION]: change.shards === undefined ? null : String(change.shards) };
      const metadata = { uid, resourceVersion: version, annotations };
      const patched = client.mergePatch(LEASE, name, namespace, { metadata, spec: specOf(change) }, options());
      return recordOf(await patched.catch(conflictOn([404, 409], name)));
    },
    /** Removes this very Lease; it may be gone already. */
    async remove({ name, uid }: LeaseRecord): Promise<void> {
      await client.delete(LEASE, name, namespace, { uid, ...options() }).catch((error: unknown) => {
        if (!isApiError(error, 409)) throw error;
      });
    },
  };
}

function specOf({ holder, transitions, leaseDurationMs }: LeaseChange): object {
  const now = microTime(Date.now()); // for people only
  return {
    holderIdentity: holder ?? null,
    renewTime: now,
    ...(transitions !== undefined && { leaseTransitions: transitions, acquireTime: now }),
    ...(leaseDurationMs !== undefined && { leaseDurationSeconds: Math.max(1, Math.round(leaseDurationMs / 1000)) }),
  };
}

function recordOf({ metadata, spec }: LiveObject) {
  type LeaseSpec = { holderIdentity?: string | null; leaseTransitions?: number };
  const { holderIdentity, leaseTransitions } = (spec ?? {}) as LeaseSpec;
  const shards = metadata.annotations?.[SHARDS_ANNOTATION];
  return {
    name: metadata.name,
    uid: metadata.uid,
    /** Changes with every write. */
    version: metadata.resourceVersion,
    /** `undefined` when it is free. */
    holder: holderIdentity || undefined,
    /** How often its holder has changed. */
    transitions: leaseTransitions ?? 0,
    /** Among how many shards its holder wants to share the work; `undefined` while it stands back. */
    shards: shards === undefined ? undefined : Number(shards),
  };
}

function conflictOn(statuses: readonly number[], name: string): (error: unknown) => never {
  return (error) => {
    throw isApiError(error, ...statuses) ? new LeaseConflict(name, { cause: error }) : error;
  };
}

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
