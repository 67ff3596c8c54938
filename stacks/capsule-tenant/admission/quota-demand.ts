import type { LiveObject } from "../../../providers/kubernetes/index";
import type { AdmissionRequest, AdmissionView } from "../../contract/index";
import { RESOURCE_QUOTA_LABEL } from "../labels";
import { growthOf, isInScope, type Usage } from "../object-usage";
import { leftOf } from "../quota";
import type { CapsuleTenant } from "../schema";

/** What a request adds to one ResourceQuota. */
export interface Demand {
  /** The ResourceQuota's key. */
  quota: string;
  /** Of the item in `resourceQuotas`. */
  index: number;
  growth: Usage;
}

/** What a request adds to the tenant's ResourceQuotas in its namespace. */
export function demandsOf(tenant: string, request: AdmissionRequest, view: AdmissionView): Demand[] {
  const { resourceQuotas = [] } = tenantOf(view, tenant)?.spec ?? {};
  const { object, resource, namespace } = request;
  if (object === undefined || resourceQuotas.length === 0) return [];
  const growth = growthOf(request);
  return view.byIndex("quotas", "namespace", namespace).flatMap((quota): Demand[] => {
    const index = Number(quota.metadata.labels?.[RESOURCE_QUOTA_LABEL]);
    const item = resourceQuotas[index];
    if (item === undefined || quota.metadata.deletionTimestamp || !isInScope(item, resource.name, object)) return [];
    const limited = [...growth].filter(([name]) => item.hard?.[name] !== undefined);
    return limited.length === 0 ? [] : [{ quota: keyOf(quota), index, growth: new Map(limited) }];
  });
}

/** Whether the tenant has as much left, by what is counted. */
export function isLeft(demands: readonly Demand[], name: string, view: AdmissionView): boolean {
  const tenant = tenantOf(view, name);
  if (tenant === undefined) return false;
  const owned = [...view.byIndex("namespaces", "tenant", name), ...view.byIndex("quotas", "tenant", name)];
  return demands.every(({ index, growth }) =>
    [...growth].every(([resource, amount]) => amount <= (leftOf(tenant, owned, index, resource) ?? 0n)),
  );
}

function tenantOf(view: AdmissionView, name: string): CapsuleTenant | undefined {
  return view.get("tenants", name) as CapsuleTenant | undefined;
}

export function keyOf({ metadata: { namespace, name } }: LiveObject): string {
  return `${namespace}/${name}`;
}
