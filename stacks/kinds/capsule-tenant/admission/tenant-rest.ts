import type { AdmissionView } from "../../../contract/index";
import type { Amount } from "../quantity";
import { leftOf } from "../quota";
import { tenantNamed } from "./tenants";

/** By item of the tenant's quotas and by resource; `undefined` while it is not known. */
export type TenantRest = (index: number, resource: string) => Amount | undefined;

/** What a tenant has left, at one moment: for all requests that are looked at then, it is added up once. */
export function tenantRest(name: string, view: AdmissionView): TenantRest {
  const tenant = tenantNamed(name, view);
  if (tenant === undefined) return () => undefined;
  const owned = ["namespaces", "quotas"].flatMap((watch) => view.byIndex(watch, "tenant", name));
  const left = leftOf(tenant, owned);
  const amounts = new Map<string, Amount | undefined>();
  return (index, resource) => {
    const key = `${index} ${resource}`;
    if (!amounts.has(key)) amounts.set(key, left(index, resource));
    return amounts.get(key);
  };
}
