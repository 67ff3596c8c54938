import type { Manifest } from "../../../../providers/kubernetes/index";
import type { CapsuleTenant } from "../schema";
import { cordonBindings, cordonPolicy } from "./cordon";
import { dismissedPolicy } from "./dismissed";
import { managedObjectPolicy } from "./managed-objects";
import { namespacePolicy } from "./namespaces";
import { tenantPolicy, tenantPolicyBindings } from "./tenant-policy";

/** The policies of all tenants, and the bindings of those that are the same for all. */
export function policies(): Manifest[] {
  return [...namespacePolicy(), ...managedObjectPolicy(), ...dismissedPolicy(), tenantPolicy(), cordonPolicy()];
}

/** What binds one tenant to the policies that it needs. It is part of the tenant's stack. */
export function policyBindings(tenant: CapsuleTenant): Manifest[] {
  return [...tenantPolicyBindings(tenant), ...cordonBindings(tenant)];
}
