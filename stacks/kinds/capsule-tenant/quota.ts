import { hash } from "node:crypto";
import { formatQuantity, type LiveObject } from "../../../providers/kubernetes/index";
import type { Maintenance } from "../../contract/index";
import { endingNamespaces, rememberUse, seenUse } from "./ending-namespaces";
import { indexedName, QUOTA_MANAGER } from "./labels";
import { madeInNamespaces } from "./namespaces";
import { type Amount, type Amounts, parseAmount, sum, unitOf } from "./quantity";
import { asksOn } from "./quota-asks";
import type { CapsuleTenant } from "./schema";
import { grants, type Slot } from "./shares";

export interface LiveQuota extends LiveObject {
  spec?: { hard?: Amounts };
  status?: { hard?: Amounts; used?: Amounts };
}

interface Balance {
  quota: LiveQuota;
  hard: Record<string, string>;
  annotations: Record<string, string>;
  /** Whether the live ResourceQuota differs. */
  isDue: boolean;
  /** Whether some amount becomes less. */
  lowers: boolean;
}

/**
 * Keeps what the tenant's ResourceQuotas grant in balance ({@link grants}), and tells in their annotations what the
 * tenant uses and may use. Each is written as it was read or not at all: when it has changed meanwhile, that change
 * leads here again.
 *
 * @returns when to look again: what was asked for and not used is free then
 */
export async function balanceQuotas(
  tenant: CapsuleTenant,
  { owned, apply, memory }: Pick<Maintenance, "owned" | "apply" | "memory">,
): Promise<{ requeueAfterMs: number } | undefined> {
  const made = madeInNamespaces(tenant, owned);
  const { lastUse, notes } = endingNamespaces(owned, rememberUse(memory, owned, made));
  await Promise.all(notes.map((note) => apply(note, QUOTA_MANAGER)));
  const quotasOf = quotasByItem(tenant, made, lastUse);
  const due = (tenant.spec.resourceQuotas ?? []).flatMap(({ hard = {} }, index) => {
    const { quotas, lost } = quotasOf(index);
    return balances(hard, quotas.sort(byNamespace), lost).filter((balance) => balance.isDue);
  });
  for (const lowers of [true, false]) {
    await Promise.all(
      due
        .filter((balance) => balance.lowers === lowers)
        .map(({ quota: { apiVersion, kind, metadata }, hard, annotations }) => {
          const { name, namespace = "", uid, resourceVersion } = metadata;
          const identity = { name, namespace, uid, resourceVersion };
          return apply({ apiVersion, kind, metadata: { ...identity, annotations }, spec: { hard } }, QUOTA_MANAGER);
        }),
    );
  }
  return untilAsksEnd(owned);
}

/** What the tenant has left, by item of its quotas and by resource; `undefined` while that is not known. */
export function leftOf(tenant: CapsuleTenant, owned: readonly LiveObject[]) {
  const made = madeInNamespaces(tenant, owned);
  const quotasOf = quotasByItem(tenant, made, endingNamespaces(owned, seenUse(made)).lastUse);
  return (index: number, resource: string): Amount | undefined => {
    const { quotas, lost } = quotasOf(index);
    const hard = tenant.spec.resourceQuotas?.[index]?.hard?.[resource];
    const lostAmount = lost(resource);
    if (hard === undefined || lostAmount === undefined) return undefined;
    return parseAmount(hard) - lostAmount - usedIn(quotas, resource);
  };
}

/**
 * The ResourceQuotas among which the amounts of an item are divided. `lost` is what is used of a resource where nothing
 * more is granted; `undefined` while that is not known.
 */
function quotasByItem(
  { metadata: { name: tenant } }: CapsuleTenant,
  made: readonly LiveQuota[],
  lastUse: ReturnType<typeof endingNamespaces>["lastUse"],
) {
  const present = made.filter(
    ({ kind, metadata: { namespace = "" } }) => kind === "ResourceQuota" && !lastUse.has(namespace),
  );
  const byName = Map.groupBy(present, ({ metadata }) => metadata.name);
  const isEnding = ({ metadata }: LiveQuota) => metadata.deletionTimestamp !== undefined;
  return (index: number) => {
    const all = byName.get(indexedName(tenant, index)) ?? [];
    const lost = (resource: string) => {
      const uses = [...lastUse.values()].filter((use) => use !== undefined);
      if (uses.length < lastUse.size) return undefined;
      const usedBefore = sum(uses.map((use) => parseAmount(use[index]?.[resource] ?? 0)));
      return usedBefore + usedIn(all.filter(isEnding), resource);
    };
    return { quotas: all.filter((quota) => !isEnding(quota)), lost };
  };
}

function untilAsksEnd(owned: readonly LiveObject[]): { requeueAfterMs: number } | undefined {
  const now = Date.now();
  const ends = owned.flatMap((object) => [...asksOn(object, now).values()].map(({ until }) => until));
  return ends.length === 0 ? undefined : { requeueAfterMs: Math.min(...ends) - now };
}

/** @param lost what is used where nothing more is granted; `undefined` while that is not known, so that all stays as it is */
function balances(
  hard: Amounts,
  quotas: readonly LiveQuota[],
  lost: (resource: string) => Amount | undefined,
): Balance[] {
  const balances = quotas.map((quota): Balance => {
    const isTakenBack = Object.keys(quota.spec?.hard ?? {}).some((resource) => !(resource in hard));
    return { quota, hard: {}, annotations: {}, isDue: isTakenBack, lowers: false };
  });
  const asks = quotas.map((quota) => asksOn(quota));
  for (const [resource, limit] of Object.entries(hard)) {
    const slots = quotas.map(
      (quota, index): Slot => ({ ...countOf(quota, resource), asked: asks[index]?.get(resource) }),
    );
    const lostAmount = lost(resource);
    const [usedAnnotation, hardAnnotation] = [annotationOf("used", resource), annotationOf("hard", resource)];
    const used = formatQuantity(usedIn(quotas, resource) + (lostAmount ?? 0n), limit);
    const whole = formatQuantity(parseAmount(limit), limit);
    const granted =
      lostAmount === undefined
        ? slots.map(({ granted = 0n }) => granted)
        : grants(parseAmount(limit) - lostAmount, slots, unitOf(resource, limit));
    for (const [index, balance] of balances.entries()) {
      const [before, amount] = [slots[index]?.granted, granted[index] as Amount];
      const { annotations } = balance.quota.metadata;
      balance.hard[resource] = formatQuantity(amount, limit);
      balance.annotations[usedAnnotation] = used;
      balance.annotations[hardAnnotation] = whole;
      balance.isDue ||=
        amount !== before || annotations?.[usedAnnotation] !== used || annotations[hardAnnotation] !== whole;
      balance.lowers ||= before !== undefined && amount < before;
    }
  }
  return balances;
}

/** Parsed once for each state of a ResourceQuota. */
const counts = new WeakMap<LiveQuota, Map<string, Slot>>();

export function countOf(quota: LiveQuota, resource: string): Slot {
  const byResource = counts.get(quota) ?? new Map<string, Slot>();
  counts.set(quota, byResource);
  const { spec, status } = quota;
  const amountIn = (amounts: Amounts | undefined) => {
    const quantity = amounts?.[resource];
    return quantity === undefined ? undefined : parseAmount(quantity);
  };
  const count = byResource.get(resource) ?? {
    used: amountIn(status?.used),
    granted: amountIn(spec?.hard),
    enforced: amountIn(status?.hard),
  };
  byResource.set(resource, count);
  return count;
}

function usedIn(quotas: readonly LiveQuota[], resource: string): Amount {
  return sum(quotas.map((quota) => countOf(quota, resource).used ?? 0n));
}

function byNamespace(a: LiveObject, b: LiveObject): number {
  return (a.metadata.namespace ?? "") < (b.metadata.namespace ?? "") ? -1 : 1;
}

/**
 * On a ResourceQuota: what the tenant's namespaces use of a resource together, or may use. A resource's name may have a
 * slash in it (`count/deployments.apps`); the name of an annotation may not.
 */
function annotationOf(what: "used" | "hard", resource: string): string {
  const name = `${what}-${resource.replaceAll("/", "_")}`;
  // As long as a name may be; two that begin alike stay two.
  const shown = name.length <= 63 ? name : `${name.slice(0, 54)}-${hash("sha256", name).slice(0, 8)}`;
  return `quota.capsule.clastix.io/${shown}`;
}
