import type { LiveObject } from "../../providers/kubernetes/index";
import type { Maintenance } from "../contract/index";
import { EndingNamespaces, rememberUse } from "./ending-namespaces";
import { hardAnnotation, QUOTA_MANAGER, RESOURCE_QUOTA_LABEL, usedAnnotation } from "./labels";
import { type Amount, formatAmount, parseAmount, unitOf } from "./quantity";
import { asksOn } from "./quota-asks";
import type { CapsuleTenant } from "./schema";
import { grants, type Slot } from "./shares";

type Amounts = Record<string, string | number>;

/** A ResourceQuota as the API server has it. */
export interface LiveQuota extends LiveObject {
  spec?: { hard?: Amounts };
  status?: { hard?: Amounts; used?: Amounts };
}

/** What a ResourceQuota is to say. */
interface Balance {
  quota: LiveQuota;
  hard: Record<string, string>;
  annotations: Record<string, string>;
  /** Whether something in it becomes less. */
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
  { owned, apply }: Pick<Maintenance, "owned" | "apply">,
): Promise<{ requeueAfterMs: number } | undefined> {
  rememberUse(tenant, owned);
  const ending = new EndingNamespaces(tenant, owned);
  await Promise.all(ending.notes().map((note) => apply(note, QUOTA_MANAGER)));
  const due = (tenant.spec.resourceQuotas ?? []).flatMap(({ hard = {} }, index) => {
    const { quotas, lost } = quotasOfItem(owned, ending, index);
    return balances(hard, quotas, lost).filter(isDue);
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

/** What the tenant has left of a resource of an item; `undefined` while that is not known. */
export function leftOf(
  tenant: CapsuleTenant,
  owned: readonly LiveObject[],
  index: number,
  resource: string,
): Amount | undefined {
  const { quotas, lost } = quotasOfItem(owned, new EndingNamespaces(tenant, owned), index);
  const hard = tenant.spec.resourceQuotas?.[index]?.hard?.[resource];
  const lostAmount = lost(resource);
  if (hard === undefined || lostAmount === undefined) return undefined;
  return parseAmount(hard) - lostAmount - total(quotas.map((quota) => slotOf(quota, resource)));
}

/**
 * The ResourceQuotas among which the amounts of an item are shared. `lost` is what is used of a resource where nothing
 * more is granted; `undefined` while that is not known.
 */
function quotasOfItem(owned: readonly LiveObject[], ending: EndingNamespaces, index: number) {
  const present = (owned as LiveQuota[])
    .filter(
      ({ kind, metadata }) => kind === "ResourceQuota" && metadata.labels?.[RESOURCE_QUOTA_LABEL] === String(index),
    )
    .filter(({ metadata }) => !ending.has(metadata.namespace ?? ""))
    .sort(byNamespace);
  const left = present.filter(isEnding);
  const lost = (resource: string) => {
    const used = ending.used(index, resource);
    return used === undefined ? undefined : used + total(left.map((quota) => slotOf(quota, resource)));
  };
  return { quotas: present.filter((quota) => !isEnding(quota)), lost };
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
  const due = quotas.map((quota): Balance => ({ quota, hard: {}, annotations: {}, lowers: false }));
  for (const [resource, limit] of Object.entries(hard)) {
    const slots = quotas.map((quota) => slotOf(quota, resource));
    const lostAmount = lost(resource);
    const mostOfAll = formatAmount(parseAmount(limit), limit);
    const isShared = quotas.every(({ metadata }) => metadata.annotations?.[hardAnnotation(resource)] === mostOfAll);
    const granted =
      lostAmount === undefined
        ? slots.map(({ granted = 0n }) => granted)
        : grants(parseAmount(limit) - lostAmount, slots, unitOf(resource, limit), isShared);
    const used = formatAmount(total(slots) + (lostAmount ?? 0n), limit);
    for (const [index, balance] of due.entries()) {
      const amount = granted[index] as Amount;
      balance.hard[resource] = formatAmount(amount, limit);
      balance.annotations[usedAnnotation(resource)] = used;
      balance.annotations[hardAnnotation(resource)] = mostOfAll;
      balance.lowers ||= amount < (slots[index]?.granted ?? amount);
    }
  }
  return due;
}

export function slotOf(quota: LiveQuota, resource: string): Slot {
  const { spec, status } = quota;
  const amountIn = (amounts: Amounts | undefined) => {
    const quantity = amounts?.[resource];
    return quantity === undefined ? undefined : parseAmount(quantity);
  };
  return {
    used: amountIn(status?.used),
    granted: amountIn(spec?.hard),
    enforced: amountIn(status?.hard),
    asked: asksOn(quota).get(resource),
  };
}

function total(slots: readonly Slot[]): Amount {
  return slots.reduce((sum, { used = 0n }) => sum + used, 0n);
}

function isDue({ quota: { metadata, spec }, hard, annotations }: Balance): boolean {
  const present = spec?.hard ?? {};
  return (
    Object.keys({ ...present, ...hard }).some((resource) => !isSame(present[resource], hard[resource])) ||
    Object.entries(annotations).some(([name, value]) => metadata.annotations?.[name] !== value)
  );
}

function isSame(a: string | number | undefined, b: string | number | undefined): boolean {
  return a === undefined || b === undefined ? a === b : parseAmount(a) === parseAmount(b);
}

function isEnding({ metadata }: LiveObject): boolean {
  return metadata.deletionTimestamp !== undefined;
}

function byNamespace(a: LiveObject, b: LiveObject): number {
  return (a.metadata.namespace ?? "") < (b.metadata.namespace ?? "") ? -1 : 1;
}
