import type { LiveObject } from "../../../providers/kubernetes/index";
import type { Maintenance } from "../../contract/index";
import { DELETE_YOUNGER } from "./labels";
import { presentNamespaces, surplusNamespaces } from "./namespaces";
import type { CapsuleTenant } from "./schema";

/*
 * Two objects that are created within the lag of a watch are both admitted where only one may be. Afterwards, what is stored
 * decides: the younger one is told of, on its tenant and by an Event, and deleted where the installation says so.
 */

/** What is older was there before the rule, and is never deleted. */
const YOUNG_MS = 5 * 60_000;

/** On a surplus namespace that was created together with others: the exceeded quota, so that one Event tells of it. */
const SURPLUS_ANNOTATION = "kindstack.dev/beyond-namespace-quota";
const SURPLUS_MANAGER = "kindstack-surplus";

/** Whether the younger of two objects is to be deleted, rather than told of alone. */
export function deletesYounger(): boolean {
  return process.env[DELETE_YOUNGER] === "true";
}

export function isYoung({ metadata: { creationTimestamp = "" } }: LiveObject): boolean {
  return Date.now() - Date.parse(creationTimestamp) < YOUNG_MS;
}

/** Tells of namespaces beyond the tenant's quota, in which its owner has no rights, or deletes them. */
export async function tellOfSurplus(
  tenant: CapsuleTenant,
  { owned, apply, remove, warn }: Pick<Maintenance, "owned" | "apply" | "remove" | "warn">,
): Promise<void> {
  const { metadata, spec } = tenant;
  const surplus = surplusNamespaces(tenant, owned);
  for (const namespace of presentNamespaces(owned)) {
    const { apiVersion, kind, metadata: own } = namespace;
    const isSurplus = surplus.has(own.name);
    const isDeleted = isSurplus && deletesYounger() && isYoung(namespace);
    const isTold = own.annotations?.[SURPLUS_ANNOTATION] !== undefined;
    if (isSurplus !== isTold) {
      const annotations = isSurplus ? { [SURPLUS_ANNOTATION]: String(spec.namespaceQuota) } : {};
      await apply({ apiVersion, kind, metadata: { name: own.name, uid: own.uid, annotations } }, SURPLUS_MANAGER);
    }
    if (isSurplus && !isTold) {
      const message =
        `it came together with others and is beyond the quota of ${spec.namespaceQuota} namespaces of the tenant ${metadata.name}: ` +
        (isDeleted ? "it is deleted" : "the owner gets no rights in it");
      warn(namespace, "NamespaceQuotaExceeded", message);
    }
    if (isDeleted) await remove(namespace);
  }
}
