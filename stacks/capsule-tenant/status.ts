import type { LiveObject } from "../../providers/kubernetes/client";
import type { KindObject } from "../contract/object";
import { namespacesOf } from "./namespaces";
import type { CapsuleTenantSpec, CapsuleTenantStatus } from "./schema";

export function capsuleTenantReport(
  tenant: KindObject<CapsuleTenantSpec>,
  owned: readonly LiveObject[],
): CapsuleTenantStatus {
  const namespaces = namespacesOf(tenant, owned, []);
  return { size: namespaces.length, namespaces };
}

/** Namespaces that came to the tenant or left it since the last update. */
export function capsuleTenantShortfall(
  tenant: KindObject<CapsuleTenantSpec>,
  owned: readonly LiveObject[],
  observed: readonly LiveObject[],
): string[] {
  const wanted = namespacesOf(tenant, owned, observed);
  const made = owned.filter(({ kind }) => kind === "Namespace").map(({ metadata }) => metadata.name);
  return [
    ...wanted.filter((name) => !made.includes(name)).map((name) => `namespace ${name} is new`),
    ...owned
      .filter(
        ({ kind, metadata }) => kind === "Namespace" && !metadata.deletionTimestamp && !wanted.includes(metadata.name),
      )
      .map(({ metadata }) => `namespace ${metadata.name} has left`),
  ];
}
