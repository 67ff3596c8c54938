import { LRUCache } from "lru-cache";
import Type from "typebox";
import type { LiveObject, Manifest } from "../../providers/kubernetes/index";
import type { KindObject } from "../contract/index";
import { jsonReader } from "./annotation-json";
import { RESOURCE_QUOTA_LABEL } from "./labels";
import { type Amount, type Amounts, parseAmount, QUANTITY } from "./quantity";

/*
 * What a namespace that is being deleted still uses counts until it is gone. Its ResourceQuotas are deleted before what has
 * finalizers, so their last status is kept on the namespace itself.
 */

/** On a namespace that is being deleted: what it used last, by item of the tenant's quotas and by resource. */
const LAST_USE_ANNOTATION = "kindstack.dev/last-quota-use";

type LastUse = Record<string, Amounts>;

const quantity = Type.Union([Type.String({ pattern: QUANTITY }), Type.Number({ minimum: 0 })]);
const parseLastUse = jsonReader(Type.Record(Type.String(), Type.Record(Type.String(), quantity)));

/** What ResourceQuotas said last, by tenant and namespace: their end may be seen before that of their namespace. */
const seen = new LRUCache<string, LastUse>({ max: 10_000 });

/** Namespaces of a tenant that are being deleted. */
export class EndingNamespaces {
  /** By namespace; `undefined` while what it uses is not known. */
  readonly #lastUse = new Map<string, LastUse | undefined>();
  /** What is to be written on them, so that it is known after a restart. */
  readonly notes: Manifest[] = [];

  /** @param owned the tenant's namespaces and ResourceQuotas, among others */
  constructor({ metadata: { uid: tenant } }: KindObject, owned: readonly LiveObject[]) {
    const useOf = useByNamespace(owned);
    for (const { apiVersion, kind, metadata } of owned) {
      if (kind !== "Namespace" || metadata.deletionTimestamp === undefined) continue;
      const { name, uid } = metadata;
      const noted = parseLastUse(metadata.annotations?.[LAST_USE_ANNOTATION]);
      const use = useOf.get(name) ?? noted ?? seen.get(`${tenant}/${name}`);
      this.#lastUse.set(name, use);
      if (noted === undefined && use !== undefined) {
        const annotations = { [LAST_USE_ANNOTATION]: JSON.stringify(use) };
        this.notes.push({ apiVersion, kind, metadata: { name, uid, annotations } });
      }
    }
  }

  has(namespace: string): boolean {
    return this.#lastUse.has(namespace);
  }

  /** What they use together of a resource of an item; `undefined` while that of one is not known. */
  used(index: number, resource: string): Amount | undefined {
    let sum = 0n;
    for (const use of this.#lastUse.values()) {
      if (use === undefined) return undefined;
      sum += parseAmount(use[String(index)]?.[resource] ?? 0);
    }
    return sum;
  }
}

/** Remembers what the tenant's ResourceQuotas say. */
export function rememberUse({ metadata: { uid } }: KindObject, owned: readonly LiveObject[]): void {
  for (const [namespace, use] of useByNamespace(owned)) seen.set(`${uid}/${namespace}`, use);
}

function useByNamespace(owned: readonly LiveObject[]): Map<string, LastUse> {
  const useOf = new Map<string, LastUse>();
  for (const { kind, metadata, status } of owned) {
    const index = metadata.labels?.[RESOURCE_QUOTA_LABEL];
    if (kind !== "ResourceQuota" || index === undefined) continue;
    const { used } = (status ?? {}) as { used?: Amounts };
    const namespace = metadata.namespace ?? "";
    useOf.set(namespace, { ...useOf.get(namespace), ...(used && { [index]: used }) });
  }
  return useOf;
}
