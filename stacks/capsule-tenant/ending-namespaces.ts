import { LRUCache } from "lru-cache";
import Type from "typebox";
import { Compile } from "typebox/compile";
import type { LiveObject, Manifest } from "../../providers/kubernetes/index";
import type { KindObject } from "../contract/index";
import { RESOURCE_QUOTA_LABEL } from "./labels";
import { type Amount, parseAmount } from "./quantity";

/*
 * What a namespace that is being deleted still uses counts until it is gone. Its ResourceQuotas go before what has
 * finalizers does, so that what they said last is kept on the namespace itself.
 */

/** On a namespace that is being deleted: what it used last, by item of the tenant's quotas and by resource. */
const LAST_USE_ANNOTATION = "kindstack.dev/last-quota-use";

type Amounts = Record<string, string | number>;
type LastUse = Record<string, Amounts>;

const lastUseSchema = Compile(
  Type.Record(Type.String(), Type.Record(Type.String(), Type.Union([Type.String(), Type.Number()]))),
);

/** What ResourceQuotas said last, by tenant and namespace: their end may be seen before that of their namespace. */
const seen = new LRUCache<string, LastUse>({ max: 10_000 });

/** Namespaces of a tenant that are being deleted. */
export class EndingNamespaces {
  /** By namespace; `undefined` while what it uses is not known. */
  readonly #lastUse = new Map<string, LastUse | undefined>();
  readonly #toNote: LiveObject[] = [];

  /** @param owned the tenant's namespaces and ResourceQuotas, among others */
  constructor({ metadata: { uid } }: KindObject, owned: readonly LiveObject[]) {
    const useOf = useByNamespace(owned);
    for (const namespace of owned.filter(({ kind, metadata }) => kind === "Namespace" && metadata.deletionTimestamp)) {
      const { name } = namespace.metadata;
      const noted = notedUse(namespace);
      this.#lastUse.set(name, useOf.get(name) ?? noted ?? seen.get(`${uid}/${name}`));
      if (noted === undefined && this.#lastUse.get(name) !== undefined) this.#toNote.push(namespace);
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

  /** What is to be written on them, so that it is known after a restart. */
  notes(): Manifest[] {
    return this.#toNote.map(({ apiVersion, kind, metadata: { name, uid } }) => ({
      apiVersion,
      kind,
      metadata: { name, uid, annotations: { [LAST_USE_ANNOTATION]: JSON.stringify(this.#lastUse.get(name)) } },
    }));
  }
}

/** Remembers what the tenant's ResourceQuotas say. */
export function rememberUse({ metadata: { uid } }: KindObject, owned: readonly LiveObject[]): void {
  for (const [namespace, use] of useByNamespace(owned)) seen.set(`${uid}/${namespace}`, use);
}

function useByNamespace(owned: readonly LiveObject[]): Map<string, LastUse> {
  const useOf = new Map<string, LastUse>();
  for (const quota of owned) {
    const index = quota.metadata.labels?.[RESOURCE_QUOTA_LABEL];
    if (quota.kind !== "ResourceQuota" || index === undefined) continue;
    const { used } = (quota.status ?? {}) as { used?: Amounts };
    const namespace = quota.metadata.namespace ?? "";
    useOf.set(namespace, { ...useOf.get(namespace), ...(used && { [index]: used }) });
  }
  return useOf;
}

function notedUse({ metadata }: LiveObject): LastUse | undefined {
  const note = metadata.annotations?.[LAST_USE_ANNOTATION];
  if (note === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(note);
    return lastUseSchema.Check(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
