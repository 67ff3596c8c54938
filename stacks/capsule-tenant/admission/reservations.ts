import { LRUCache } from "lru-cache";
import pLimit, { type LimitFunction } from "p-limit";
import Type from "typebox";
import { isApiError, type LiveObject } from "../../../providers/kubernetes/index";
import { type AdmissionView, RetryableError } from "../../contract/index";
import { jsonReader } from "../annotation-json";
import type { CapsuleTenantSpec } from "../schema";

/** On a Tenant: the namespaces that were admitted a moment ago, so that every replica counts them. */
export const RESERVATIONS_ANNOTATION = "capsule.clastix.io/admitted-namespaces";

/**
 * Lifetime of a reservation. The API server abandons a request after a minute: by then, the namespace is in every
 * cache, or will never be created.
 */
export const RESERVATION_MS = 60_000;
/** Maximum clock difference between replicas. A later expiry was written before a clock was set back. */
const CLOCK_SKEW_MS = 60_000;
const MAX_ATTEMPTS = 10;
/** Maximum number of reservations in an annotation, and so of namespaces that a tenant creates within a minute. */
const MAX_RESERVED = 500;
/** Maximum number of remembered deletions; after a forgotten one, the reservation lasts its minute. */
const MAX_ENDED = 10_000;
/** Maximum number of remembered Tenants; a forgotten one is read from the cache. */
const MAX_TENANTS = 1_000;

const readReservations = jsonReader(
  Type.Record(
    Type.String(),
    Type.Object({
      /** ms since the epoch */
      until: Type.Number(),
      /** The version of the cache when it did not have the namespace yet. */
      version: Type.String(),
    }),
  ),
);
type Reservations = NonNullable<ReturnType<typeof readReservations>>;

/** Reserves the tenants' quotas for namespaces that are admitted but not yet created. */
export class QuotaReservations {
  /** By the Tenant's UID: one write at a time, so that conflicts are only with other replicas. */
  readonly #inOrder = new LRUCache<string, LimitFunction>({ max: MAX_TENANTS, memoMethod: () => pLimit(1) });
  /** By the Tenant's UID: as this replica wrote it last. The cache may not show that yet. */
  readonly #written = new LRUCache<string, LiveObject>({ max: MAX_TENANTS });
  /** By the name of a namespace that is gone: the version of its end. */
  readonly #ended = new LRUCache<string, string>({ max: MAX_ENDED });

  /** A namespace is gone, and with it its reservation. */
  ended({ metadata: { name, resourceVersion } }: LiveObject): void {
    this.#ended.set(name, resourceVersion);
  }

  /**
   * Reserves one namespace of the tenant's quota.
   *
   * @param key its name
   * @returns undefined, or the quota that is used up
   */
  reserve(view: AdmissionView, tenant: LiveObject, key: string, dryRun: boolean): Promise<number | undefined> {
    return this.#inOrder.memo(tenant.metadata.uid)(() => this.#reserve(view, tenant, key, dryRun));
  }

  /**
   * By compare-and-swap on the Tenant: of two replicas that take the last place, one is refused and looks again. The first
   * attempt is made with the cached Tenant, which saves a read; a stale one conflicts, and nothing is refused because of it.
   */
  async #reserve(view: AdmissionView, tenant: LiveObject, key: string, dryRun: boolean): Promise<number | undefined> {
    const { name, uid } = tenant.metadata;
    let current = this.#latest(uid, view.get("tenants", name));
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      let others = current && this.#roomBeside(view, current, key);
      if (current === undefined || others === undefined) {
        current = await view.client.get(tenant, name);
        if (current?.metadata.uid !== uid) throw new RetryableError("Gone", `the tenant ${name} is being deleted`);
        others = this.#roomBeside(view, current, key);
      }
      if (others === undefined) return quotaOf(current);
      if (dryRun || (await this.#write(view, current, others, key))) return undefined;
      current = undefined;
    }
    throw new RetryableError("Conflict", `the tenant ${name} keeps changing; try again`);
  }

  /** A dry run, which writes nothing, would not notice that the cached Tenant is stale. */
  #latest(uid: string, cached: LiveObject | undefined): LiveObject | undefined {
    const written = this.#written.get(uid);
    if (cached?.metadata.uid !== uid) return written;
    return written && isOlder(cached.metadata.resourceVersion, written.metadata.resourceVersion) ? written : cached;
  }

  /** The other reservations, where the quota has room for one more; `undefined` where it has not, or there is no quota. */
  #roomBeside(view: AdmissionView, tenant: LiveObject, key: string): Reservations | undefined {
    const reserved = this.#valid(readReservations(tenant.metadata.annotations?.[RESERVATIONS_ANNOTATION]) ?? {});
    const names = view.byIndex("namespaces", "tenant", tenant.metadata.name).map(({ metadata }) => metadata.name);
    const others = new Set([...names, ...Object.keys(reserved)]);
    others.delete(key);
    return others.size < (quotaOf(tenant) ?? 0) ? reserved : undefined;
  }

  /** @returns whether the Tenant was still as it was read */
  async #write(view: AdmissionView, tenant: LiveObject, reserved: Reservations, key: string): Promise<boolean> {
    const { name, uid, resourceVersion } = tenant.metadata;
    if (Object.keys(reserved).length >= MAX_RESERVED) {
      throw new RetryableError(
        "TooMany",
        `${MAX_RESERVED} namespaces of the tenant ${name} were created in the last minute`,
      );
    }
    const reservation = { until: Date.now() + RESERVATION_MS, version: view.version("namespaces") };
    const annotations = { [RESERVATIONS_ANNOTATION]: JSON.stringify({ ...reserved, [key]: reservation }) };
    try {
      const patch = { metadata: { uid, resourceVersion, annotations } };
      this.#written.set(uid, await view.client.mergePatch(tenant, name, undefined, patch));
      return true;
    } catch (error) {
      if (isApiError(error, 409, 404)) return false;
      throw error;
    }
  }

  #valid(reservations: Reservations): Reservations {
    const now = Date.now();
    return Object.fromEntries(
      Object.entries(reservations).filter(([name, { until, version }]) => {
        const end = this.#ended.peek(name);
        const isValid = until > now && until <= now + RESERVATION_MS + CLOCK_SKEW_MS;
        return isValid && (end === undefined || isOlder(end, version));
      }),
    );
  }
}

function quotaOf(tenant: LiveObject): number | undefined {
  return (tenant.spec as CapsuleTenantSpec).namespaceQuota;
}

/** Versions of one type are decimal numbers of any length. */
function isOlder(version: string, than: string): boolean {
  return version.length === than.length ? version < than : version.length < than.length;
}
