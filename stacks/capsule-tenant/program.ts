import type { Resource } from "@pulumi/pulumi/resource";
import { KubernetesObject, type Manifest, type ObjectInputs, type ObjectMeta } from "../../providers/kubernetes/index";
import { controllerReference, type KindObject, type ProgramContext } from "../contract/index";
import { collisionScope } from "./admission/hostnames";
import { quotasLabel } from "./admission/quotas";
import { toNetwork } from "./cidr";
import {
  HOSTNAME_COLLISION_LABEL,
  INGRESS_CLASSES_ANNOTATION,
  INGRESS_CLASSES_REGEXP_ANNOTATION,
  indexedName,
  LIMIT_RANGE_LABEL,
  NAMESPACE_DELETER,
  NETWORK_POLICY_LABEL,
  NODE_SELECTOR_ANNOTATION,
  QUOTA_MANAGER,
  QUOTAS_LABEL,
  REGISTRIES_ANNOTATION,
  REGISTRIES_REGEXP_ANNOTATION,
  RESOURCE_QUOTA_LABEL,
  ROLE_BINDING_LABEL,
  SERVICES_METADATA_LABEL,
  STORAGE_CLASSES_ANNOTATION,
  STORAGE_CLASSES_REGEXP_ANNOTATION,
  TENANT_LABEL,
} from "./labels";
import { keyRuleAnnotations } from "./namespace-metadata";
import { namespacesOf } from "./namespaces";
import { policyBindings } from "./policies/policies";
import { mayHaveRights } from "./rights";
import type { AllowedList, CapsuleTenant, CapsuleTenantSpec, ResourceQuotaItem } from "./schema";

const RBAC_GROUP = "rbac.authorization.k8s.io";

/** For each of the tenant's namespaces: its metadata, its limits, and then what its owner may do in it. */
export function capsuleTenantProgram(object: CapsuleTenant, { owner, owned, watched }: ProgramContext): void {
  const { spec } = object;
  const bindings = policyBindings(object).map(
    (manifest) => new KubernetesObject(`policy/${manifest.metadata.name}`, { owner, manifest }),
  );
  for (const namespace of namespacesOf(object, owned, watched)) {
    const inNamespace = new KubernetesObject(`namespace/${namespace}`, {
      owner,
      existing: true, // its owner made it, and its end is the garbage collector's business
      givenBy: TENANT_LABEL,
      manifest: {
        apiVersion: "v1",
        kind: "Namespace",
        metadata: { name: namespace, ...namespaceMetadata(object), ownerReferences: [controllerReference(object)] },
      },
    });
    const register = (index: number, item: IndexedItem, dependsOn: Resource | Resource[] = inNamespace) =>
      registerItem(object, owner, namespace, index, item, dependsOn);
    spec.limitRanges?.forEach((limitRange, index) => {
      register(index, { apiVersion: "v1", kind: "LimitRange", label: LIMIT_RANGE_LABEL, fields: { spec: limitRange } });
    });
    spec.networkPolicies?.forEach((policy, index) => {
      register(index, {
        apiVersion: "networking.k8s.io/v1",
        kind: "NetworkPolicy",
        label: NETWORK_POLICY_LABEL,
        fields: { spec: withNetworks(policy) },
      });
    });
    const quotas = (spec.resourceQuotas ?? []).map((quota, index) => register(index, resourceQuota(quota)));
    // Its owner may make nothing in the namespace before it is counted and checked, nor after it is no longer.
    if (!mayHaveRights(object, namespace, { owned, watched })) continue;
    roleBindings(spec).forEach((binding, index) => {
      register(index, binding, [inNamespace, ...quotas, ...bindings]);
    });
  }
}

/** An item of one of the tenant's lists, as an object in a namespace. */
interface IndexedItem {
  apiVersion: string;
  kind: string;
  /** Carries the index. */
  label: string;
  fields: object;
  /** Fields that the object is created with and that the balancer of quotas keeps. */
  balanced?: object;
}

function registerItem(
  object: KindObject,
  owner: ObjectInputs["owner"],
  namespace: string,
  index: number,
  { apiVersion, kind, label, fields, balanced }: IndexedItem,
  dependsOn: Resource | Resource[],
): Resource {
  const tenant = object.metadata.name;
  const manifest: Manifest = {
    apiVersion,
    kind,
    metadata: {
      name: indexedName(tenant, index),
      namespace,
      labels: { [TENANT_LABEL]: tenant, [label]: String(index) },
      ownerReferences: [controllerReference(object)],
    },
    ...fields,
  };
  const initial = balanced && { manifest: { ...manifest, ...balanced }, fieldManager: QUOTA_MANAGER };
  return new KubernetesObject(
    `${kind.toLowerCase()}/${namespace}/${index}`,
    { owner, manifest, adopt: "replace", ...(initial && { initial }) },
    { dependsOn },
  );
}

/** What each of the tenant's namespaces gets, besides the owner reference. */
export function namespaceMetadata(object: CapsuleTenant): ObjectMeta {
  const { metadata, spec } = object;
  const { nodeSelector, namespacesMetadata, ingressClasses, storageClasses, containerRegistries } = spec;
  const annotations = {
    ...namespacesMetadata?.additionalAnnotations,
    ...allowedAnnotations(ingressClasses, INGRESS_CLASSES_ANNOTATION, INGRESS_CLASSES_REGEXP_ANNOTATION),
    ...allowedAnnotations(storageClasses, STORAGE_CLASSES_ANNOTATION, STORAGE_CLASSES_REGEXP_ANNOTATION),
    ...allowedAnnotations(containerRegistries, REGISTRIES_ANNOTATION, REGISTRIES_REGEXP_ANNOTATION),
    ...keyRuleAnnotations(object),
    ...(nodeSelector && { [NODE_SELECTOR_ANNOTATION]: selectorText(nodeSelector) }),
  };
  return {
    labels: { ...namespacesMetadata?.additionalLabels, ...webhookLabels(object), [TENANT_LABEL]: metadata.name },
    ...(Object.keys(annotations).length > 0 && { annotations }),
  };
}

/** Selects the namespace for the webhooks. */
function webhookLabels(object: CapsuleTenant): Record<string, string> {
  const scope = collisionScope(object) ?? "Disabled";
  const { servicesMetadata, resourceQuotas = [] } = object.spec;
  return {
    ...(servicesMetadata && { [SERVICES_METADATA_LABEL]: "true" }),
    ...(resourceQuotas.length > 0 && { [QUOTAS_LABEL]: quotasLabel(resourceQuotas) }),
    ...(scope !== "Disabled" && { [HOSTNAME_COLLISION_LABEL]: scope }),
  };
}

function allowedAnnotations(list: AllowedList | undefined, exact: string, regexp: string): Record<string, string> {
  return {
    ...(list?.allowed && list.allowed.length > 0 && { [exact]: list.allowed.join(",") }),
    ...(list?.allowedRegex && { [regexp]: list.allowedRegex }),
  };
}

function selectorText(selector: Record<string, string>): string {
  return Object.entries(selector)
    .map(([label, value]) => `${label}=${value}`)
    .sort()
    .join(",");
}

type NetworkPolicyItem = NonNullable<CapsuleTenantSpec["networkPolicies"]>[number];

/** The policy with the networks of its addresses: the API server takes no others (`192.160.0.0/12`, not `192.168.0.0/12`). */
function withNetworks({ ingress, egress, ...policy }: NetworkPolicyItem): object {
  return {
    ...policy,
    ...(ingress && {
      ingress: ingress.map(({ from, ...rule }) => ({ ...rule, ...(from && { from: networks(from) }) })),
    }),
    ...(egress && { egress: egress.map(({ to, ...rule }) => ({ ...rule, ...(to && { to: networks(to) }) })) }),
  };
}

function networks(peers: readonly { ipBlock?: { cidr: string; except?: string[] } }[]): object[] {
  return peers.map(({ ipBlock, ...peer }) => {
    if (ipBlock === undefined) return peer;
    const { cidr, except } = ipBlock;
    return { ...peer, ipBlock: { cidr: toNetwork(cidr), ...(except && { except: except.map(toNetwork) }) } };
  });
}

/**
 * A ResourceQuota without amounts, which are the balancer's: nothing may be used until it has said how much.
 */
function resourceQuota({ hard = {}, scopes, scopeSelector }: ResourceQuotaItem): IndexedItem {
  const spec = { ...(scopes && { scopes }), ...(scopeSelector && { scopeSelector }) };
  const nothing = Object.fromEntries(Object.keys(hard).map((resource) => [resource, "0"]));
  return {
    apiVersion: "v1",
    kind: "ResourceQuota",
    label: RESOURCE_QUOTA_LABEL,
    fields: Object.keys(spec).length > 0 ? { spec } : {},
    balanced: { spec: { ...spec, hard: nothing } },
  };
}

/** The owner is admin and may delete the namespace; then those that the tenant names besides. */
function roleBindings({ owner, additionalRoleBindings = [] }: CapsuleTenantSpec): IndexedItem[] {
  const own = ["admin", NAMESPACE_DELETER].map((role) => roleBinding(role, [ownerSubject(owner)]));
  return [...own, ...additionalRoleBindings.map((binding) => roleBinding(binding.clusterRoleName, binding.subjects))];
}

function roleBinding(role: string, subjects: readonly object[]): IndexedItem {
  return {
    apiVersion: `${RBAC_GROUP}/v1`,
    kind: "RoleBinding",
    label: ROLE_BINDING_LABEL,
    fields: { roleRef: { apiGroup: RBAC_GROUP, kind: "ClusterRole", name: role }, subjects },
  };
}

/** A tenant's owner as RBAC has it; a ServiceAccount is called `system:serviceaccount:<namespace>:<name>`. */
function ownerSubject({ kind, name }: CapsuleTenantSpec["owner"]): object {
  if (kind !== "ServiceAccount") return { apiGroup: RBAC_GROUP, kind, name };
  const [namespace, account] = name.split(":").slice(-2);
  return { kind, name: account, namespace };
}
