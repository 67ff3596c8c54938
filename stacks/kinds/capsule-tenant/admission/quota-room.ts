import { randomUUID } from "node:crypto";
import type { LiveObject } from "../../../../providers/kubernetes/index";
import { type AdmissionRequest, type AdmissionView, objectKey } from "../../../contract/index";
import { RESOURCE_QUOTA_LABEL, TENANT_LABEL } from "../labels";
import { growthOf, isInScope, type Usage } from "../object-usage";
import { ASK_ANNOTATION_PREFIX } from "../quota-asks";
import type { CapsuleTenant } from "../schema";
import { COUNTED_WITHIN_MS } from "./expected-use";
import { NamespaceQuota } from "./namespace-quota";
import { type TenantRest, tenantRest } from "./tenant-rest";
import { tenantOf } from "./tenants";

/** The webhook's time-out, less what the answer takes. */
const WAIT_MS = 3_500;
/** Freed capacity reaches the caches within this time. */
const DOUBT_MS = 100;
/** Delay after a change before waiting requests are checked again, so that several changes cause one check. */
const LOOK_DELAY_MS = 5;
/** Timers may be a little early. */
const SLACK_MS = 20;
/** Maximum number of waiting requests. Others go to the API server at once. */
export const MAX_WAITING = { inAll: 128, perTenant: 32 };

interface Demand {
  quota: NamespaceQuota;
  growth: Usage;
}

interface WaitingRequest {
  tenant: string;
  demands: readonly Demand[];
  /** In ms since the epoch. */
  since: number;
  /** Runs while the tenant does not seem to have enough left. */
  doubt: NodeJS.Timeout | undefined;
  letThrough(afterMs?: number): void;
}

/**
 * Holds requests that exceed their namespace's share of a quota, but not what the tenant has left, until the quotas are
 * balanced in their favour. It grants nothing: the API server counts each request after it.
 *
 * A request is let through without delay when it fits and when too many wait, after a moment when the tenant does not have
 * that much left, and after {@link WAIT_MS} in any case.
 */
export class QuotaRoom {
  /** By key; those that requests have asked about. */
  readonly #quotas = new Map<string, NamespaceQuota>();
  /** The oldest first. */
  readonly #waiting = new Set<WaitingRequest>();
  /** By tenant. */
  readonly #looks = new Map<string, NodeJS.Timeout>();
  readonly #annotation = `${ASK_ANNOTATION_PREFIX}${randomUUID().slice(0, 8)}`;

  /** Resolves when the API server is to decide. */
  async make(request: AdmissionRequest, view: AdmissionView): Promise<void> {
    const tenant = tenantOf(request.namespace, view);
    if (tenant === undefined || request.dryRun) return;
    const demands = this.#demandsOf(tenant, request, view);
    if (demands.length === 0) return;
    if (allFit(demands)) return pause(this.#expect(demands));
    const { name } = tenant.metadata;
    if (this.#isFull(name)) return;
    await new Promise<void>((resolve) => {
      const waiting: WaitingRequest = {
        tenant: name,
        demands,
        since: Date.now(),
        doubt: undefined,
        letThrough: (afterMs = 0) => {
          clearTimeout(deadline);
          clearTimeout(waiting.doubt);
          this.#waiting.delete(waiting);
          void pause(afterMs).then(resolve);
          this.#ask(demands);
        },
      };
      const deadline = setTimeout(waiting.letThrough, WAIT_MS);
      this.#waiting.add(waiting);
      this.#look(waiting, tenantRest(name, view));
    });
  }

  /** What a request adds to the tenant's ResourceQuotas in its namespace. */
  #demandsOf({ spec }: CapsuleTenant, request: AdmissionRequest, view: AdmissionView): Demand[] {
    const { resourceQuotas = [] } = spec;
    const { object, resource, namespace } = request;
    if (object === undefined || resourceQuotas.length === 0) return [];
    const growth = growthOf(request);
    return view.byIndex("quotas", "namespace", namespace).flatMap((quota) => {
      const item = resourceQuotas[Number(quota.metadata.labels?.[RESOURCE_QUOTA_LABEL])];
      if (item === undefined || quota.metadata.deletionTimestamp || !isInScope(item, resource.name, object)) return [];
      const limited = new Map([...growth].filter(([name]) => item.hard?.[name] !== undefined));
      return limited.size === 0 ? [] : [{ quota: this.#quotaOf(objectKey(quota.metadata), view), growth: limited }];
    });
  }

  /** A ResourceQuota has changed: waiting requests may fit, or the tenant may have too little left for them. */
  quotaChanged(object: LiveObject, view: AdmissionView): void {
    const quota = this.#quotas.get(objectKey(object.metadata));
    if (quota !== undefined) {
      quota.quotaChanged(object);
      this.#ask([{ quota }]);
    }
    const tenant = object.metadata.labels?.[TENANT_LABEL] ?? "";
    if (this.#looks.has(tenant) || this.#waitingOf(tenant).length === 0) return;
    const look = () => {
      this.#looks.delete(tenant);
      const rest = tenantRest(tenant, view);
      for (const waiting of this.#waitingOf(tenant)) this.#look(waiting, rest);
    };
    this.#looks.set(tenant, setTimeout(look, LOOK_DELAY_MS));
  }

  quotaDeleted({ metadata }: LiveObject): void {
    this.#quotas.delete(objectKey(metadata));
  }

  #look(waiting: WaitingRequest, rest: TenantRest): void {
    const { demands, letThrough } = waiting;
    if (allFit(demands)) {
      letThrough(this.#expect(demands));
    } else if (demands.every(({ quota, growth }) => quota.isLeft(growth, rest))) {
      clearTimeout(waiting.doubt);
      waiting.doubt = undefined;
      this.#ask(demands);
    } else {
      waiting.doubt ??= setTimeout(letThrough, DOUBT_MS);
    }
  }

  #waitingOf(tenant: string): WaitingRequest[] {
    return [...this.#waiting].filter((waiting) => waiting.tenant === tenant);
  }

  #isFull(tenant: string): boolean {
    return this.#waiting.size >= MAX_WAITING.inAll || this.#waitingOf(tenant).length >= MAX_WAITING.perTenant;
  }

  /** Admits a request that fits. @returns the ms until the API server surely counts by the last raise */
  #expect(demands: readonly Demand[]): number {
    for (const { quota, growth } of demands) quota.expected.add(growth);
    // Frees the use of a request that is never counted.
    if (demands.some(({ quota }) => quota.hasAsked)) {
      setTimeout(() => this.#ask(demands), COUNTED_WITHIN_MS + SLACK_MS).unref();
    }
    return Math.max(...demands.map(({ quota }) => quota.untilEnforcedMs));
  }

  #quotaOf(key: string, view: AdmissionView): NamespaceQuota {
    const known = this.#quotas.get(key);
    // Admission that is started again has other caches.
    const quota = known?.view === view ? known : new NamespaceQuota(view, key, this.#annotation);
    this.#quotas.set(key, quota);
    return quota;
  }

  /** Asks for what is needed in these ResourceQuotas, or withdraws the ask. */
  #ask(demands: readonly Pick<Demand, "quota">[]): void {
    for (const { quota } of demands) {
      const waiting = () =>
        [...this.#waiting].flatMap((request) =>
          request.demands.filter((one) => one.quota === quota).map(({ growth }) => ({ ...request, growth })),
        );
      quota
        .ask(() => waiting().filter(({ doubt }) => doubt === undefined))
        .catch(() => {
          for (const { letThrough } of waiting()) letThrough();
        });
    }
  }
}

function allFit(demands: readonly Demand[]): boolean {
  return demands.every(({ quota, growth }) => quota.fits(growth));
}

async function pause(ms: number): Promise<void> {
  if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms));
}
