import type { AdmissionView } from "../../../contract/index";
import { RESOURCE_QUOTA_LABEL } from "../labels";
import type { Usage } from "../object-usage";
import { type Amount, min } from "../quantity";
import { countOf, type LiveQuota } from "../quota";
import { ASK_MS, type Ask, expiredAsks, formatAsks } from "../quota-asks";
import type { Slot } from "../shares";
import { ExpectedUse } from "./expected-use";
import type { TenantRest } from "./tenant-rest";

/** How much later than this process's cache the API server's own may see a raised grant. */
const ENFORCED_WITHIN_MS = 100;

/** What a request that waits needs of a ResourceQuota. */
interface Need {
  growth: Usage;
  /** When the request came, in ms since the epoch. */
  since: number;
}

/** A ResourceQuota as the cache shows it, and what this process knows and asks for besides. */
export class NamespaceQuota {
  /** Of the requests that were admitted. */
  readonly expected = new ExpectedUse();
  #enforced: Usage = new Map();
  /** When a grant was last seen to be raised, by `performance.now()`. */
  #raisedAt = Number.NEGATIVE_INFINITY;
  #asks: ReadonlyMap<string, Ask> = new Map();
  #isWriting = false;

  constructor(
    readonly view: AdmissionView,
    private readonly key: string,
    private readonly annotation: string,
  ) {
    if (this.#live !== undefined) this.quotaChanged(this.#live);
  }

  get #live(): LiveQuota | undefined {
    return this.view.get("quotas", this.key) as LiveQuota | undefined;
  }

  quotaChanged(quota: LiveQuota): void {
    const enforced = amountsIn(quota, "enforced");
    const isRaised = [...enforced].some(([resource, amount]) => amount > (this.#enforced.get(resource) ?? amount));
    if (isRaised) this.#raisedAt = performance.now();
    this.#enforced = enforced;
    this.expected.counted(amountsIn(quota, "used"));
  }

  fits(growth: Usage): boolean {
    return [...growth].every(([resource, amount]) => {
      const { used = 0n, granted = 0n, enforced = 0n } = this.#slot(resource);
      return amount <= min(granted, enforced) - used - this.expected.of(resource);
    });
  }

  /** Whether the tenant has this much left, by the last counts. */
  isLeft(growth: Usage, rest: TenantRest): boolean {
    const index = Number(this.#live?.metadata.labels?.[RESOURCE_QUOTA_LABEL]);
    return [...growth].every(([resource, amount]) => {
      const left = rest(index, resource);
      return left !== undefined && amount <= left;
    });
  }

  /** Time in ms until the API server surely counts by the last raise. */
  get untilEnforcedMs(): number {
    return Math.max(0, this.#raisedAt + ENFORCED_WITHIN_MS - performance.now());
  }

  get hasAsked(): boolean {
    return this.#asks.size > 0;
  }

  /**
   * Writes asks until they cover the needs, and withdraws them when there are none; one write at a time.
   *
   * @param needs what requests wait for: asked again after each write
   */
  async ask(needs: () => readonly Need[]): Promise<void> {
    if (this.#isWriting) return;
    this.#isWriting = true;
    try {
      for (let asks = this.#asksFor(needs()); !this.#isAsked(asks); asks = this.#asksFor(needs())) {
        if (this.#live === undefined) return;
        await this.#write(this.#live, asks);
      }
    } finally {
      this.#isWriting = false;
    }
  }

  /** For waiting requests, and for admitted ones that had asked and are not counted yet. */
  #asksFor(needs: readonly Need[]): Map<string, Ask> {
    const asks = new Map<string, Ask>();
    const add = (resource: string, more: Amount, since: number) => {
      const { used = 0n } = this.#slot(resource);
      const ask = asks.get(resource) ?? { used, more: this.expected.of(resource), since, until: Date.now() + ASK_MS };
      asks.set(resource, { ...ask, more: ask.more + more });
    };
    for (const [resource, { since }] of this.#asks) {
      if (this.expected.of(resource) > 0n) add(resource, 0n, since);
    }
    for (const { growth, since } of needs) {
      for (const [resource, amount] of growth) add(resource, amount, since);
    }
    return asks;
  }

  #isAsked(asks: ReadonlyMap<string, Ask>): boolean {
    if (asks.size === 0) return this.#asks.size === 0;
    const now = Date.now();
    return [...asks].every(([resource, { used, more }]) => {
      const asked = this.#asks.get(resource);
      return asked !== undefined && asked.until > now && asked.used + asked.more >= used + more;
    });
  }

  async #write(quota: LiveQuota, asks: ReadonlyMap<string, Ask>): Promise<void> {
    const { name, namespace, uid } = quota.metadata;
    this.#asks = asks;
    const annotations = {
      ...Object.fromEntries(expiredAsks(quota).map((annotation) => [annotation, null])),
      [this.annotation]: asks.size === 0 ? null : formatAsks(asks),
    };
    await this.view.client.mergePatch(quota, name, namespace, { metadata: { uid, annotations } });
  }

  #slot(resource: string): Partial<Slot> {
    return this.#live === undefined ? {} : countOf(this.#live, resource);
  }
}

function amountsIn(quota: LiveQuota, what: "used" | "enforced"): Usage {
  const resources = Object.keys(quota.spec?.hard ?? {});
  return new Map(resources.map((resource) => [resource, countOf(quota, resource)[what] ?? 0n]));
}
