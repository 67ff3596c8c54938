import type { LiveObject } from "../../../providers/kubernetes/index";
import type { AdmissionRequest, AdmissionView } from "../../contract/index";
import { RESOURCE_QUOTA_LABEL } from "../labels";
import { growthOf, isInScope, type Usage } from "../object-usage";
import { leftOf } from "../quota";
import { tenantNamed } from "./tenants";

/** What a request adds to one ResourceQuota. */
export interface QuotaDemand<Quota = LiveObject> {
  quota: Quota;
  /** Of the item in `resourceQuotas`. */
  index: number;
  growth: Usage;
}

/** What a request adds to the tenant's ResourceQuotas in its namespace. */
export function demandsOf(tenant: string, request: AdmissionRequest, view: AdmissionView): QuotaDemand[] {
  const { resourceQuotas = [] } = tenantNamed(tenant, view)?.spec ?? {};
  const { object, resource, namespace } = request;
  if (object === undefined || resourceQuotas.length === 0) return [];
  const growth = growthOf(request);
  return view.byIndex("quotas", "namespace", namespace).flatMap((quota): QuotaDemand[] => {
    const index = Number(quota.metadata.labels?.[RESOURCE_QUOTA_LABEL]);
    const item = resourceQuotas[index];
    if (item === undefined || quota.metadata.deletionTimestamp || !isInScope(item, resource.name, object)) return [];
    const limited = [...growth].filter(([name]) => item.hard?.[name] !== undefined);
    return limited.length === 0 ? [] : [{ quota, index, growth: new Map(limited) }];
  });
}

/** Whether the tenant has as much left, by what is counted. */
export function isLeft(demands: readonly QuotaDemand<unknown>[], name: string, view: AdmissionView): boolean {
  const tenant = tenantNamed(name, view);
  if (tenant === undefined) return false;
  const owned = [...view.byIndex("namespaces", "tenant", name), ...view.byIndex("quotas", "tenant", name)];
  return demands.every(({ index, growth }) =>
    [...growth].every(([resource, amount]) => amount <= (leftOf(tenant, owned, index, resource) ?? 0n)),
  );
}
