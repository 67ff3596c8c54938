import { randomUUID } from "node:crypto";
import type { LiveObject } from "../../../providers/kubernetes/index";
import type { AdmissionRequest, AdmissionView } from "../../contract/index";
import { ASK_ANNOTATION_PREFIX, TENANT_LABEL } from "../labels";
import type { Usage } from "../object-usage";
import type { Amount } from "../quantity";
import { type LiveQuota, slotOf } from "../quota";
import { ASK_MS, type Ask } from "../quota-asks";
import type { Slot } from "../shares";
import { AskWriter } from "./ask-writer";
import { COUNTED_WITHIN_MS, ExpectedUse } from "./expected-use";
import { type Demand, demandsOf, isLeft, keyOf } from "./quota-demand";

/** The webhook's time-out, less what the answer takes. */
const WAIT_MS = 3_500;
/** What was freed a moment ago is in the caches within so long. */
const DOUBT_MS = 100;
/** The API server counts by a cache of its own, which may see a raised share later than this one: by so much at most. */
const ENFORCED_WITHIN_MS = 100;
/** So long after a change what waits is looked at again: several changes at once. */
const LOOK_DELAY_MS = 5;
/** Timers may be a little early. */
const SLACK_MS = 20;
/** So many requests wait at most; the API server decides about others at once. */
export const MAX_WAITING = { inAll: 128, perTenant: 32 };

interface WaitingRequest {
  view: AdmissionView;
  tenant: string;
  demands: readonly Demand[];
  /** In ms since the epoch. */
  since: number;
  /** Runs while the tenant does not seem to have enough left. */
  doubt: NodeJS.Timeout | undefined;
  letThrough(afterMs?: number): void;
}

/** What is known of a ResourceQuota beyond its cached state. */
interface Room {
  view: AdmissionView;
  expected: ExpectedUse;
  writer: AskWriter;
  enforced: Usage;
  /** When something of it was seen to be raised last, by `performance.now()`. */
  raisedAt: number;
}

/**
 * Holds requests that exceed their namespace's share of a quota, but not what the tenant has left, until the shares are
 * balanced in their favour. It grants nothing: the API server counts each request after it.
 *
 * A request is let through without delay when it fits and when too many wait, after a moment when the tenant does not have
 * that much left, and after {@link WAIT_MS} in any case.
 */
export class QuotaRoom {
  /** By the ResourceQuota's key. */
  readonly #rooms = new Map<string, Room>();
  /** The oldest first. */
  readonly #waiting = new Set<WaitingRequest>();
  /** By tenant. */
  readonly #looks = new Map<string, NodeJS.Timeout>();
  readonly #annotation = `${ASK_ANNOTATION_PREFIX}${randomUUID().slice(0, 8)}`;

  /** Resolves when the API server is to decide. */
  async make(request: AdmissionRequest, view: AdmissionView): Promise<void> {
    const tenant = view.get("namespaces", request.namespace)?.metadata.labels?.[TENANT_LABEL] ?? "";
    const demands = demandsOf(tenant, request, view);
    if (demands.length === 0 || request.dryRun) return;
    if (this.#fits(demands, view)) {
      this.#expect(demands, view);
      return pause(this.#untilEnforcedMs(demands));
    }
    if (this.#isFull(tenant)) return;
    await new Promise<void>((resolve) => {
      const waiting: WaitingRequest = {
        view,
        tenant,
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
      this.#look(waiting);
    });
  }

  /** A ResourceQuota has changed: what waits may fit, or may no longer be left. */
  changed(quota: LiveObject): void {
    const key = keyOf(quota);
    const room = this.#rooms.get(key);
    if (room !== undefined) this.#follow(room, quota);
    this.#ask([{ quota: key }]);
    const tenant = quota.metadata.labels?.[TENANT_LABEL] ?? "";
    if (this.#looks.has(tenant) || this.#waitingOf(tenant).length === 0) return;
    const look = () => {
      this.#looks.delete(tenant);
      for (const waiting of this.#waitingOf(tenant)) this.#look(waiting);
    };
    this.#looks.set(tenant, setTimeout(look, LOOK_DELAY_MS));
  }

  #follow(room: Room, quota: LiveObject): void {
    const enforced = amountsIn(quota, "enforced");
    const isRaised = [...enforced].some(([resource, amount]) => amount > (room.enforced.get(resource) ?? amount));
    if (isRaised) room.raisedAt = performance.now();
    room.enforced = enforced;
    room.expected.counted(amountsIn(quota, "used"));
  }

  /** Until the API server surely counts by what was raised last. */
  #untilEnforcedMs(demands: readonly Demand[]): number {
    const raisedAt = Math.max(...demands.map(({ quota }) => this.#rooms.get(quota)?.raisedAt ?? 0));
    return Math.max(0, raisedAt + ENFORCED_WITHIN_MS - performance.now());
  }

  gone(quota: LiveObject): void {
    this.#rooms.delete(keyOf(quota));
  }

  #look(waiting: WaitingRequest): void {
    const { demands, tenant, view, letThrough } = waiting;
    if (this.#fits(demands, view)) {
      this.#expect(demands, view);
      letThrough(this.#untilEnforcedMs(demands));
    } else if (isLeft(demands, tenant, view)) {
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

  #fits(demands: readonly Demand[], view: AdmissionView): boolean {
    return demands.every(({ quota, growth }) =>
      [...growth].every(([resource, amount]) => amount <= this.#freeOf(quota, resource, view)),
    );
  }

  /** What can be used at once, as far as it is known. */
  #freeOf(key: string, resource: string, view: AdmissionView): Amount {
    const { used = 0n, granted = 0n, enforced = 0n } = slotIn(view, key, resource);
    return (granted < enforced ? granted : enforced) - used - this.#roomOf(key, view).expected.of(resource);
  }

  #expect(demands: readonly Demand[], view: AdmissionView): void {
    for (const { quota, growth } of demands) this.#roomOf(quota, view).expected.add(growth);
    // What is never counted is kept from others for no longer.
    if (demands.some(({ quota }) => this.#rooms.get(quota)?.writer.written.size)) {
      setTimeout(() => this.#ask(demands), COUNTED_WITHIN_MS + SLACK_MS).unref();
    }
  }

  #roomOf(key: string, view: AdmissionView): Room {
    let room = this.#rooms.get(key);
    if (room === undefined) {
      const writer = new AskWriter(this.#annotation);
      room = { view, expected: new ExpectedUse(), writer, enforced: new Map(), raisedAt: Number.NEGATIVE_INFINITY };
      this.#rooms.set(key, room);
      const quota = view.get("quotas", key);
      if (quota !== undefined) this.#follow(room, quota);
    }
    return room;
  }

  /** Asks for what is needed in these ResourceQuotas, or for nothing any more. */
  #ask(demands: readonly Pick<Demand, "quota">[]): void {
    for (const { quota: key } of demands) {
      const room = this.#rooms.get(key);
      const quota = room?.view.get("quotas", key);
      if (room === undefined || quota === undefined) continue;
      room.writer
        .keep(room.view, quota, () => this.#neededIn(key, room))
        .catch(() => {
          const waiting = [...this.#waiting].filter((one) => one.demands.some((demand) => demand.quota === key));
          for (const { letThrough } of waiting) letThrough();
        });
    }
  }

  /** What requests wait for, and what was asked for and is not counted yet. */
  #neededIn(key: string, { view, expected, writer }: Room): Map<string, Ask> {
    const now = Date.now();
    const askFor = (resource: string, since: number): Ask => {
      const { used = 0n } = slotIn(view, key, resource);
      return { used, more: expected.of(resource), since, until: now + ASK_MS };
    };
    const asks = new Map<string, Ask>();
    for (const [resource, { since }] of writer.written) {
      if (expected.of(resource) > 0n) asks.set(resource, askFor(resource, since));
    }
    for (const { demands, since, doubt } of this.#waiting) {
      const growth = demands.find(({ quota }) => quota === key)?.growth;
      if (growth === undefined || doubt !== undefined) continue;
      for (const [resource, amount] of growth) {
        const ask = asks.get(resource) ?? askFor(resource, since);
        asks.set(resource, { ...ask, more: ask.more + amount });
      }
    }
    return asks;
  }
}

async function pause(ms: number): Promise<void> {
  if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms));
}

function slotIn(view: AdmissionView, key: string, resource: string): Partial<Slot> {
  const quota = view.get("quotas", key);
  return quota === undefined ? {} : slotOf(quota as LiveQuota, resource);
}

function amountsIn(quota: LiveObject, what: "used" | "enforced"): Usage {
  const { hard = {} } = (quota as LiveQuota).spec ?? {};
  return new Map(Object.keys(hard).map((resource) => [resource, slotOf(quota as LiveQuota, resource)[what] ?? 0n]));
}
