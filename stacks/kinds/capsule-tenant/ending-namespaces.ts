import Type from "typebox";
import type { LiveObject, Manifest } from "../../../providers/kubernetes/index";
import type { Maintenance } from "../../contract/index";
import { jsonReader } from "./annotation-json";
import { RESOURCE_QUOTA_LABEL } from "./labels";
import { type Amounts, QUANTITY } from "./quantity";

/*
 * What a namespace that is being deleted still uses counts until it is gone. Its ResourceQuotas are deleted before what has
 * finalizers, so their last status is kept on the namespace itself.
 */

/** On a namespace that is being deleted: what it used last, by item of the tenant's quotas and by resource. */
const LAST_USE_ANNOTATION = "kindstack.dev/last-quota-use";

type LastUse = Record<string, Amounts>;

/** Its values may be of anyone with the right to edit the namespace. */
const quantity = Type.Union([
  Type.String({ maxLength: 64, pattern: QUANTITY }),
  Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
]);
const readLastUse = jsonReader(Type.Record(Type.String(), Type.Record(Type.String(), quantity)));

/** What a tenant's ResourceQuotas said last, by namespace: their end may be seen before that of their namespace. */
type SeenUse = ReadonlyMap<string, LastUse>;

const SEEN = "last use";

/**
 * The namespaces of a tenant that are being deleted.
 *
 * @returns by namespace: what it uses, `undefined` while that is not known; and what is to be written on them, so that it
 *   is known after a restart
 */
export function endingNamespaces(owned: readonly LiveObject[], seen: SeenUse) {
  const lastUse = new Map<string, LastUse | undefined>();
  const notes: Manifest[] = [];
  for (const { apiVersion, kind, metadata } of owned) {
    if (kind !== "Namespace" || metadata.deletionTimestamp === undefined) continue;
    const { name, uid } = metadata;
    const noted = readLastUse(metadata.annotations?.[LAST_USE_ANNOTATION]);
    const last = seen.get(name);
    // Its ResourceQuotas go one after the other.
    const use = (noted ?? last) && { ...noted, ...last };
    lastUse.set(name, use);
    if (noted !== undefined || use === undefined) continue;
    notes.push({
      apiVersion,
      kind,
      metadata: { name, uid, annotations: { [LAST_USE_ANNOTATION]: JSON.stringify(use) } },
    });
  }
  return { lastUse, notes };
}

/** Remembers what the tenant's ResourceQuotas say now, and forgets namespaces that are gone. */
export function rememberUse(
  memory: Maintenance["memory"],
  owned: readonly LiveObject[],
  made: readonly LiveObject[],
): SeenUse {
  const namespaces = new Set(owned.filter(({ kind }) => kind === "Namespace").map(({ metadata }) => metadata.name));
  const seen = new Map([...seenUse(made, memory.get(SEEN) as SeenUse)].filter(([name]) => namespaces.has(name)));
  memory.set(SEEN, seen);
  return seen;
}

/** @param before what they said earlier, for those that are gone */
export function seenUse(made: readonly LiveObject[], before: SeenUse = new Map()): SeenUse {
  const useOf = new Map(before);
  for (const { kind, metadata, status } of made) {
    const index = metadata.labels?.[RESOURCE_QUOTA_LABEL];
    if (kind !== "ResourceQuota" || index === undefined) continue;
    const { used } = (status ?? {}) as { used?: Amounts };
    const namespace = metadata.namespace ?? "";
    useOf.set(namespace, { ...useOf.get(namespace), ...(used && { [index]: used }) });
  }
  return useOf;
}
