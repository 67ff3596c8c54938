import type { LiveObject, Manifest, OwnerReference } from "../../../providers/kubernetes/client";
import type {
  AdmissionRequest,
  AdmissionView,
  AdmissionWebhook,
  Decision,
  PatchOperation,
  RequestingUser,
} from "../../contract/admission";
import { controllerReference, type KindObject } from "../../contract/object";
import { TENANT_LABEL } from "../labels";
import type { CapsuleTenantSpec } from "../schema";
import type { QuotaReservations } from "./reservations";
import { ADMINISTERS_TENANTS, isMember, userGroups } from "./user-groups";

/**
 * Namespaces that members of the groups create become their tenant's, or are refused.
 *
 * While no operator answers they are refused: a namespace of nobody's would have no limits. Only these users are
 * concerned; the cluster's own namespaces are made by nobody of them, and so never wait for the operator.
 */
export function namespaceWebhook(reservations: QuotaReservations): AdmissionWebhook {
  return {
    name: "namespaces.capsule.clastix.io",
    type: "mutating",
    rules: [
      { apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["namespaces"], scope: "Cluster" },
    ],
    failurePolicy: "Fail",
    matchConditions: [
      { name: "member-of-a-user-group", expression: isMember(userGroups()) },
      { name: "no-administrator-of-tenants", expression: `!${ADMINISTERS_TENANTS}` },
    ],
    timeoutSeconds: 10,
    sideEffects: "NoneOnDryRun",
    review: (request, view) => reviewNamespace(request, view, reservations),
  };
}

/** Under which a Tenant is found by its owner. */
export function ownersOf(tenant: LiveObject): string[] {
  const { kind, name } = (tenant.spec as CapsuleTenantSpec).owner;
  return [ownerKey(kind, name)];
}

async function reviewNamespace(
  request: AdmissionRequest,
  view: AdmissionView,
  reservations: QuotaReservations,
): Promise<Decision> {
  const { object: namespace, user, name, uid, dryRun } = request;
  if (request.operation !== "CREATE" || namespace === undefined) return { allowed: true };
  if (name.startsWith("kube-")) return refuse(`namespaces kube-* belong to the cluster: ${name} cannot be a tenant's`);
  if (name !== "" && view.get("namespaces", name) !== undefined) {
    // It will be refused in any case, and so needs no place in the quota.
    return { allowed: false, code: 409, message: `the namespace ${name} exists already` };
  }
  const tenant = assign(namespace, user, view);
  if (typeof tenant === "string") return refuse(tenant);

  const theft = (namespace.metadata.ownerReferences ?? []).find(
    (reference) => isTenant(reference) && reference.uid !== tenant.metadata.uid,
  );
  if (theft !== undefined) {
    return refuse(`the namespace is the tenant ${tenant.metadata.name}'s and cannot be owned by ${theft.name} as well`);
  }
  const quota = await reservations.reserve(view, tenant, name || `${namespace.metadata.generateName}${uid}`, dryRun);
  if (quota !== undefined) {
    return refuse(`the tenant ${tenant.metadata.name} has all of the ${quota} namespaces that its quota allows`);
  }
  return { allowed: true, patch: assignment(namespace, tenant) };
}

/** The tenant that a namespace is to be of, or in words why it can be of none. */
function assign(namespace: Manifest, user: RequestingUser, view: AdmissionView): LiveObject | string {
  const owned = new Map<string, LiveObject>();
  for (const key of userKeys(user)) {
    for (const tenant of view.byIndex("tenants", "owner", key)) owned.set(tenant.metadata.name, tenant);
  }
  const names = [...owned.keys()].sort();
  if (names.length === 0) return `${user.username} owns no tenant, and so cannot create namespaces`;
  const wanted = namespace.metadata.labels?.[TENANT_LABEL];
  if (wanted === undefined && names.length > 1) {
    return `${user.username} owns several tenants; the label ${TENANT_LABEL} must name one of ${names.join(", ")}`;
  }
  const tenant = owned.get(wanted ?? names[0] ?? "");
  // Whether there is such a tenant is nobody's business who does not own it.
  if (tenant === undefined) return `${user.username} does not own a tenant ${wanted}, but ${names.join(", ")}`;
  if (tenant.metadata.deletionTimestamp) return `the tenant ${tenant.metadata.name} is being deleted`;
  return tenant;
}

/** What makes the namespace the tenant's; nothing when it is that already. */
function assignment(namespace: Manifest, tenant: LiveObject): PatchOperation[] {
  const { labels, ownerReferences = [] } = namespace.metadata;
  const patch: PatchOperation[] = [];
  if (labels === undefined) patch.push({ op: "add", path: "/metadata/labels", value: {} });
  if (labels?.[TENANT_LABEL] !== tenant.metadata.name) {
    patch.push({ op: "add", path: `/metadata/labels/${escaped(TENANT_LABEL)}`, value: tenant.metadata.name });
  }
  const reference = controllerReference(tenant as unknown as KindObject);
  const others = ownerReferences.filter(({ uid }) => uid !== reference.uid);
  if (JSON.stringify(ownerReferences) !== JSON.stringify([...others, reference])) {
    patch.push({ op: "add", path: "/metadata/ownerReferences", value: [...others, reference] });
  }
  return patch;
}

/** Under which the tenants of somebody are found: their own name, and their groups'. */
function userKeys({ username, groups }: RequestingUser): string[] {
  return [ownerKey("User", username), ownerKey("ServiceAccount", username), ...groups.map((g) => ownerKey("Group", g))];
}

function ownerKey(kind: string, name: string): string {
  return `${kind}:${name}`;
}

function isTenant({ kind, apiVersion }: OwnerReference): boolean {
  return kind === "Tenant" && apiVersion.startsWith("capsule.clastix.io/");
}

function escaped(key: string): string {
  return key.replaceAll("~", "~0").replaceAll("/", "~1");
}

function refuse(message: string): Decision {
  return { allowed: false, message };
}
