import type { Resource } from "@pulumi/pulumi/resource";
import { KubernetesObject, type ObjectMeta, type ObjectType } from "../../../providers/kubernetes/index";
import { controllerReference, type ProgramContext } from "../../contract/index";
import { collisionScope } from "./admission/ingress-collisions";
import { quotasLabel } from "./admission/quotas";
import { formerSubjects, type Subject } from "./former-subjects";
import {
  HOSTNAME_COLLISION_LABEL,
  indexedName,
  NAMESPACE_DELETER,
  NODE_SELECTOR_ANNOTATION,
  QUOTA_MANAGER,
  QUOTAS_LABEL,
  RESOURCE_QUOTA_LABEL,
  ROLE_BINDING_LABEL,
  SERVICES_METADATA_LABEL,
  TENANT_LABEL,
} from "./labels";
import { keyRuleAnnotations } from "./namespace-metadata";
import { namespacesOf } from "./namespaces";
import { withNetworks } from "./network-policy";
import { policyBindings } from "./policies/policies";
import { mayHaveRights } from "./rights";
import type { CapsuleTenant, CapsuleTenantSpec, ResourceQuotaItem } from "./schema";

const RBAC_GROUP = "rbac.authorization.k8s.io";

/** What a namespace gets for each item of one of the tenant's lists. The label has the item's index. */
interface ItemType extends ObjectType {
  label: string;
}
const LIMIT_RANGE: ItemType = { apiVersion: "v1", kind: "LimitRange", label: "capsule.clastix.io/limit-range" };
const NETWORK_POLICY: ItemType = {
  apiVersion: "networking.k8s.io/v1",
  kind: "NetworkPolicy",
  label: "capsule.clastix.io/network-policy",
};
const RESOURCE_QUOTA: ItemType = { apiVersion: "v1", kind: "ResourceQuota", label: RESOURCE_QUOTA_LABEL };
const ROLE_BINDING: ItemType = { apiVersion: `${RBAC_GROUP}/v1`, kind: "RoleBinding", label: ROLE_BINDING_LABEL };

/** What the API server lets no one change, in RoleBindings and in quotas. */
const REPLACED = ["roleRef", "spec.scopes"];

/** An object's fields for one item. */
interface ItemFields {
  annotations?: Record<string, string>;
  /** Not a field: what it is created with instead, where the balancer of quotas keeps it. */
  balanced?: object;
  [field: string]: unknown;
}

/** For each of the tenant's namespaces: its metadata, its limits, and then what its owner may do in it. */
export function capsuleTenantProgram(tenant: CapsuleTenant, { owner, owned, watched }: ProgramContext): void {
  const { metadata, spec } = tenant;
  const deletedWith = controllerReference(tenant);
  const bindings = policyBindings(tenant).map(
    (manifest) =>
      new KubernetesObject(`policy/${manifest.metadata.name}`, { owner, manifest, replaceOnChanges: ["roleRef"] }),
  );
  for (const namespace of namespacesOf(tenant, owned, watched)) {
    const inNamespace = new KubernetesObject(
      `namespace/${namespace}`,
      {
        owner,
        existing: true, // its owner created it
        givenBy: TENANT_LABEL,
        deletedWith,
        manifest: {
          apiVersion: "v1",
          kind: "Namespace",
          metadata: { name: namespace, ...namespaceMetadata(tenant) },
        },
      },
      { dependsOn: bindings },
    );
    const register = ({ label, ...type }: ItemType, items: readonly ItemFields[] = [], dependsOn: Resource[] = []) =>
      items.map(({ balanced, annotations, ...fields }, index) => {
        const labels = { [TENANT_LABEL]: metadata.name, [label]: String(index) };
        const name = indexedName(metadata.name, index);
        const manifest = {
          ...type,
          metadata: { name, namespace, labels, ...(annotations && { annotations }) },
          ...fields,
        };
        const initial = balanced && { manifest: { ...manifest, ...balanced }, fieldManager: QUOTA_MANAGER };
        return new KubernetesObject(
          `${type.kind.toLowerCase()}/${namespace}/${index}`,
          { owner, manifest, deletedWith, adopt: "replace", replaceOnChanges: REPLACED, ...(initial && { initial }) },
          { dependsOn: [inNamespace, ...dependsOn] },
        );
      });
    register(LIMIT_RANGE, spec.limitRanges?.map(specOnly));
    register(NETWORK_POLICY, spec.networkPolicies?.map(withNetworks).map(specOnly));
    const quotas = register(RESOURCE_QUOTA, spec.resourceQuotas?.map(resourceQuota));
    // Its owner may make nothing in the namespace before it is counted and checked, nor after it is no longer.
    if (mayHaveRights(tenant, namespace, { owned, watched })) {
      const given = roleBindings(spec);
      const former = formerSubjects(tenant, namespace, { owned, given: given.flatMap(({ subjects }) => subjects) });
      const items = given.map((fields, index) => (index === 0 ? { ...fields, ...former } : fields));
      register(ROLE_BINDING, items, [...quotas, ...bindings]);
    }
  }
}

/** For a namespace's owner to read: what the tenant may use, and with `-regexp` at the end also by expression. */
const ALLOWED_ANNOTATIONS = {
  ingressClasses: "capsule.clastix.io/ingress-classes",
  storageClasses: "capsule.clastix.io/storage-classes",
  containerRegistries: "capsule.clastix.io/allowed-registries",
} as const;

export function namespaceMetadata(tenant: CapsuleTenant): ObjectMeta {
  const { metadata, spec } = tenant;
  const { nodeSelector, namespacesMetadata, servicesMetadata, resourceQuotas = [] } = spec;
  const annotations: Record<string, string> = { ...namespacesMetadata?.additionalAnnotations };
  for (const [field, annotation] of Object.entries(ALLOWED_ANNOTATIONS)) {
    const { allowed = [], allowedRegex } = spec[field as keyof typeof ALLOWED_ANNOTATIONS] ?? {};
    if (allowed.length > 0) annotations[annotation] = allowed.join(",");
    if (allowedRegex) annotations[`${annotation}-regexp`] = allowedRegex;
  }
  Object.assign(annotations, keyRuleAnnotations(tenant));
  if (nodeSelector) annotations[NODE_SELECTOR_ANNOTATION] = selectorText(nodeSelector);
  const scope = collisionScope(tenant) ?? "Disabled";
  return {
    labels: {
      ...namespacesMetadata?.additionalLabels,
      // These select the namespace for the webhooks.
      ...(servicesMetadata && { [SERVICES_METADATA_LABEL]: "true" }),
      ...(resourceQuotas.length > 0 && { [QUOTAS_LABEL]: quotasLabel(resourceQuotas) }),
      ...(scope !== "Disabled" && { [HOSTNAME_COLLISION_LABEL]: scope }),
      [TENANT_LABEL]: metadata.name,
    },
    ...(Object.keys(annotations).length > 0 && { annotations }),
  };
}

function selectorText(selector: Record<string, string>): string {
  return Object.entries(selector)
    .map(([label, value]) => `${label}=${value}`)
    .sort()
    .join(",");
}

const specOnly = (spec: object): ItemFields => ({ spec });

/** A ResourceQuota without amounts, which the balancer writes: until then, nothing may be used. */
function resourceQuota({ hard = {}, ...spec }: ResourceQuotaItem): ItemFields {
  const nothing = Object.fromEntries(Object.keys(hard).map((resource) => [resource, "0"]));
  return { ...(Object.keys(spec).length > 0 && { spec }), balanced: { spec: { ...spec, hard: nothing } } };
}

/** The owner is admin and may delete the namespace; then those that the tenant names besides. */
function roleBindings({ owner, additionalRoleBindings = [] }: CapsuleTenantSpec) {
  const subjects: Subject[] = [ownerSubject(owner)];
  const own = ["admin", NAMESPACE_DELETER].map((clusterRoleName) => ({ clusterRoleName, subjects }));
  return [...own, ...additionalRoleBindings].map(({ clusterRoleName, subjects }) => ({
    roleRef: { apiGroup: RBAC_GROUP, kind: "ClusterRole", name: clusterRoleName },
    subjects,
  }));
}

/** A tenant's owner as RBAC has it; a ServiceAccount is called `system:serviceaccount:<namespace>:<name>`. */
function ownerSubject({ kind, name }: CapsuleTenantSpec["owner"]): Subject {
  if (kind !== "ServiceAccount") return { apiGroup: RBAC_GROUP, kind, name };
  const [namespace = "", account = ""] = name.split(":").slice(-2);
  return { kind, name: account, namespace };
}
