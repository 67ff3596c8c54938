import { hash } from "node:crypto";
import {
  isProtectedNamespace,
  type Manifest,
  type OwnerReference,
  protectedNamespaces,
} from "../../../../providers/kubernetes/index";
import {
  type AdmissionRequest,
  type AdmissionView,
  type AdmissionWebhook,
  type Decision,
  generateName,
  type PatchOperation,
} from "../../../contract/index";
import { TENANT_LABEL } from "../labels";
import { METADATA_MAPS, refusedKeys } from "../namespace-metadata";
import { capsuleNamespaceView } from "../namespace-view";
import { countedNamespaces, endingIn } from "../namespaces";
import { isCordoned } from "../policies/cordon";
import { isHome } from "./homes";
import { addToMap } from "./patch";
import type { LiveTenant } from "./tenants";
import { ADMINISTERS_TENANTS, isMember, userGroups } from "./user-groups";

const NAMESPACE_NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const MAX_NAME_LENGTH = 63;
/** Each key of a namespace is compared with a tenant's expressions; Kubernetes' own keys have at most 317 characters. */
const MAX_KEYS = 200;
const MAX_KEY_LENGTH = 317;
const CAPSULE_GROUP = "capsule.clastix.io/";

/** What the webhooks for new namespaces have in common. */
const OF_CREATIONS = {
  type: "mutating",
  rules: [
    { apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["namespaces"], scope: "Cluster" },
  ],
  failurePolicy: "Fail",
  timeoutSeconds: 10,
  sideEffects: "None",
} as const;

/**
 * Namespaces that members of the groups create become their tenant's, or are refused.
 *
 * While no operator answers they are refused: a namespace without a tenant would have no limits. Only these users are
 * concerned; the cluster's own namespaces are made by others, and so never wait for the operator.
 */
export function namespaceWebhook(): AdmissionWebhook {
  return {
    ...OF_CREATIONS,
    name: "namespaces.capsule.clastix.io",
    matchConditions: [
      { name: "member-of-a-user-group", expression: isMember(userGroups()) },
      { name: "no-administrator-of-tenants", expression: `!${ADMINISTERS_TENANTS}` },
    ],
    review: reviewNamespace,
  };
}

/** Whether a namespace names a Tenant as its owner, by its UID. */
const NAMES_A_TENANT =
  "has(object.metadata.ownerReferences) && " +
  `object.metadata.ownerReferences.exists(owner, owner.kind == 'Tenant' && owner.apiVersion.startsWith('${CAPSULE_GROUP}'))`;

/**
 * A new namespace loses its references to tenants, as old backups have them: the garbage collector deletes a namespace with a dead
 * owner within a second, whatever restores it.
 */
export function restoredNamespaceWebhook(): AdmissionWebhook {
  return {
    ...OF_CREATIONS,
    name: "restored.namespaces.capsule.clastix.io",
    matchConditions: [{ name: "names-a-tenant", expression: NAMES_A_TENANT }],
    review: ({ object }) => {
      const { ownerReferences = [] } = object?.metadata ?? {};
      const value = ownerReferences.filter((owner) => !namesTenant(owner));
      if (value.length === ownerReferences.length) return { allowed: true };
      return { allowed: true, patch: [{ op: "add", path: "/metadata/ownerReferences", value }] };
    },
  };
}

function namesTenant({ apiVersion, kind }: OwnerReference): boolean {
  return kind === "Tenant" && apiVersion.startsWith(CAPSULE_GROUP);
}

function reviewNamespace(
  { operation, object: namespace, user, name: given, uid }: AdmissionRequest,
  view: AdmissionView,
): Decision {
  if (operation !== "CREATE" || namespace === undefined) return { allowed: true };
  // Whether it is protected depends on its name, also on one that is generated.
  const name = given || generateName(namespace.metadata.generateName ?? "", hash("sha256", uid, "buffer"));
  if (isProtectedNamespace(name)) {
    const names = protectedNamespaces().join(", ");
    return refuse(
      `the namespace ${name} cannot be a tenant's: the operator protects ${names} (KINDSTACK_PROTECTED_NAMESPACES)`,
    );
  }
  if (!NAMESPACE_NAME.test(name) || name.length > MAX_NAME_LENGTH) {
    return refuse(`${JSON.stringify(name)} is not a name for a namespace`);
  }
  if (view.get("namespaces", name) !== undefined) {
    // It is refused in any case; the quota is no reason.
    return { allowed: false, code: 409, message: `the namespace ${name} exists already` };
  }
  const tenant = assign(namespace, name, user, view);
  if (typeof tenant === "string") return refuse(tenant);
  const refusal = refusalBy(tenant, namespace, name);
  if (refusal !== undefined) return refuse(refusal);
  if (isHome(name, tenant.metadata.name, view)) {
    return refuse(`the namespace ${name} is the home of accounts that have rights elsewhere`);
  }
  // Two that come within the lag of the cache are decided afterwards: see `surplusNamespaces`.
  const { namespaceQuota: quota = Number.POSITIVE_INFINITY } = tenant.spec;
  const { name: tenantName } = tenant.metadata;
  const counted = countedNamespaces(tenantName, view.byIndex("namespaces", "tenant", tenantName));
  if (counted.length >= quota) {
    const ending = endingIn(counted);
    const all = `the tenant ${tenantName} has all of the ${quota} namespaces that its quota allows`;
    return refuse(ending === "" ? all : `${all}, with those that are being deleted. ${ending}`);
  }
  const naming: PatchOperation[] = given ? [] : [{ op: "add", path: "/metadata/name", value: name }];
  return { allowed: true, patch: [...naming, ...assignment(namespace, tenant)] };
}

/** The tenant that a new namespace gets, or a message why it gets none. */
function assign(
  namespace: Manifest,
  name: string,
  user: AdmissionRequest["user"],
  view: AdmissionView,
): LiveTenant | string {
  const owned = new Map<string, LiveTenant>();
  for (const key of capsuleNamespaceView.ownerKeysOf({ name: user.username, groups: user.groups })) {
    for (const tenant of view.byIndex("tenants", "owner", key)) owned.set(tenant.metadata.name, tenant as LiveTenant);
  }
  const names = [...owned.keys()].sort();
  if (names.length === 0) return `${user.username} owns no tenant, and so cannot create namespaces`;
  const wanted = namespace.metadata.labels?.[TENANT_LABEL];
  // With prefixes, the name says whose the namespace is: the longest one wins.
  const byPrefix = names
    .filter((tenant) => owned.get(tenant)?.spec.forceTenantPrefix && hasPrefix(name, tenant))
    .sort((a, b) => b.length - a.length)[0];
  if (wanted === undefined && byPrefix === undefined && names.length > 1) {
    return `${user.username} owns several tenants; the label ${TENANT_LABEL} must name one of ${names.join(", ")}`;
  }
  const tenant = owned.get(wanted ?? byPrefix ?? names[0] ?? "");
  // Only its owners may learn whether a tenant exists.
  if (tenant === undefined) return `${user.username} does not own a tenant ${wanted}, but ${names.join(", ")}`;
  if (tenant.metadata.deletionTimestamp) return `the tenant ${tenant.metadata.name} is being deleted`;
  return tenant;
}

/** A message why a tenant cannot have the namespace as requested. */
function refusalBy(tenant: LiveTenant, { metadata }: Manifest, namespace: string): string | undefined {
  const { name } = tenant.metadata;
  const other = metadata.ownerReferences?.find((owner) => !isReferenceTo(tenant, owner));
  if (other) {
    return `the namespace is the tenant ${name}'s and ends with it: it cannot be owned by ${other.kind} ${other.name} as well`;
  }
  if (isCordoned(tenant)) return `the tenant ${name} is cordoned: nothing can be created in it`;
  if (tenant.spec.forceTenantPrefix && !hasPrefix(namespace, name)) {
    return `the names of namespaces of the tenant ${name} begin with "${name}-"`;
  }
  for (const map of METADATA_MAPS) {
    const keys = Object.keys(metadata[map] ?? {});
    if (keys.length > MAX_KEYS || keys.some((key) => key.length > MAX_KEY_LENGTH)) {
      return `a tenant's namespace has at most ${MAX_KEYS} ${map}, with keys of at most ${MAX_KEY_LENGTH} characters`;
    }
    const refused = refusedKeys(tenant, map, keys).join(", ");
    if (refused) return `the ${map} ${refused} cannot be set on a namespace of the tenant ${name} by its owner`;
  }
  return undefined;
}

function hasPrefix(name: string, tenant: string): boolean {
  return name.startsWith(`${tenant}-`);
}

/** Also by a UID that it had before, as in a backup. */
function isReferenceTo({ metadata }: LiveTenant, owner: OwnerReference): boolean {
  return owner.uid === metadata.uid || (namesTenant(owner) && owner.name === metadata.name);
}

function assignment(namespace: Manifest, tenant: LiveTenant): PatchOperation[] {
  const { labels, ownerReferences = [] } = namespace.metadata;
  const patch = addToMap("/metadata/labels", labels, { [TENANT_LABEL]: tenant.metadata.name });
  if (ownerReferences.length > 0) patch.push({ op: "remove", path: "/metadata/ownerReferences" });
  return patch;
}

function refuse(message: string): Decision {
  return { allowed: false, message };
}
