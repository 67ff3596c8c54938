import { type LiveObject, OWNER_UID_LABEL } from "../../../providers/kubernetes/index";
import type { KindCondition } from "../../contract/index";
import { collisionScope } from "./admission/ingress-collisions";
import { collisionsOf } from "./collisions";
import { formerSubjectsCondition } from "./former-subjects";
import { HOSTNAME_COLLISION_LABEL } from "./labels";
import { KEY_RULE_ANNOTATIONS } from "./namespace-metadata";
import {
  countedNamespaces,
  endingIn,
  hasRights,
  namespacesOf,
  presentNamespaces,
  surplusNamespaces,
} from "./namespaces";
import { isCordoned } from "./policies/cordon";
import { policyBindings } from "./policies/policies";
import { namespaceMetadata } from "./program";
import { mayHaveRights } from "./rights";
import type { CapsuleTenant, CapsuleTenantStatus } from "./schema";

export function capsuleTenantReport(tenant: CapsuleTenant, owned: readonly LiveObject[]): CapsuleTenantStatus {
  const namespaces = countedNamespaces(tenant.metadata.name, owned).map(({ metadata }) => metadata.name);
  return { size: namespaces.length, namespaces: namespaces.sort() };
}

/** Whether the tenant is cordoned, whether owners have rights, and which namespaces are being deleted. */
export function capsuleTenantConditions(tenant: CapsuleTenant, owned: readonly LiveObject[]): KindCondition[] {
  const binding = owned.some(({ metadata }) => metadata.name === `capsule-cordon-${tenant.metadata.name}`);
  return [
    isCordoned(tenant)
      ? {
          type: "Cordoned",
          status: binding ? "True" : "False",
          reason: binding ? "Cordoned" : "NotYetCordoned",
          message: "nothing new can be created in the tenant's namespaces; running workloads continue",
        }
      : { type: "Cordoned", status: "False", reason: "NotCordoned", message: "the owner may work in the namespaces" },
    enforced(tenant, owned),
    terminating(tenant, owned),
    formerSubjectsCondition(tenant, owned),
  ];
}

function terminating({ metadata: { name } }: CapsuleTenant, owned: readonly LiveObject[]): KindCondition {
  const type = "NamespacesTerminating";
  const message = endingIn(countedNamespaces(name, owned));
  if (message !== "") return { type, status: "True", reason: "Terminating", message };
  return { type, status: "False", reason: "Settled", message: "none of the namespaces is being deleted" };
}

function enforced(tenant: CapsuleTenant, owned: readonly LiveObject[]): KindCondition {
  const not = (reason: KindCondition["reason"], message: string): KindCondition => {
    return { type: "Enforced", status: "False", reason, message };
  };
  const collisions = collisionsIn(tenant, owned);
  if (collisions.length > 0) {
    const all = collisions.join("; ");
    return not("HostCollision", `Ingresses came together with older ones; change one of each two: ${all}`);
  }
  const surplus = [...surplusNamespaces(tenant, owned)].sort();
  if (surplus.length > 0) {
    return not(
      "NamespaceQuotaExceeded",
      `${surplus.join(", ")} came together with others and are beyond the quota of ${tenant.spec.namespaceQuota} namespaces:` +
        " the owner gets no rights there. Raise spec.namespaceQuota, or delete those with nothing in them",
    );
  }
  const present = namespacesOf(tenant, owned, []);
  const waiting = present.filter((namespace) => !hasRights(namespace, owned));
  if (tenant.metadata.deletionTimestamp !== undefined && (present.length === 0 || waiting.length > 0)) {
    return not("Deleting", "the tenant is being deleted, and its owner's rights with it");
  }
  if (waiting.length > 0) {
    return not(
      "NotYetEnforced",
      "waiting until the API server enforces the tenant's restrictions and counts its quotas; then the owner gets rights. " +
        `The operator must serve admission (--admission-port). Namespaces: ${waiting.join(", ")}`,
    );
  }
  return { type: "Enforced", status: "True", reason: "Enforced", message: "the owner has rights in all namespaces" };
}

/** What is noted on the tenant's namespaces, while it compares host names. */
function collisionsIn(tenant: CapsuleTenant, owned: readonly LiveObject[]): string[] {
  if ((collisionScope(tenant) ?? "Disabled") === "Disabled") return [];
  return presentNamespaces(owned).flatMap((namespace) =>
    Object.entries(collisionsOf(namespace)).map(([name, text]) => `${namespace.metadata.name}/${name} takes ${text}`),
  );
}

/**
 * Namespaces that came to the tenant or left it since the last update, and those whose owner may have rights by now. And
 * what follows from the Tenant's labels and annotations: these make no new generation.
 */
export function capsuleTenantNeedsReconcile(
  tenant: CapsuleTenant,
  owned: readonly LiveObject[],
  watched: readonly LiveObject[],
): string[] {
  const wanted = namespacesOf(tenant, owned, watched);
  // Those of a predecessor, as a restore brings them, are not this tenant's yet.
  const { uid } = tenant.metadata;
  const made = namesOf(
    "Namespace",
    owned.filter(({ metadata: { labels } }) => (labels?.[OWNER_UID_LABEL] ?? uid) === uid),
  );
  const ready = wanted.filter(
    (name) => made.includes(name) && !hasRights(name, owned) && mayHaveRights(tenant, name, { owned, watched }),
  );
  const present = presentNamespaces(owned).map(({ metadata }) => metadata.name);
  const wantedBindings = policyBindings(tenant).map(({ metadata }) => metadata.name ?? "");
  const madeBindings = namesOf("ValidatingAdmissionPolicyBinding", owned);
  return [
    ...ready.map((name) => `namespace ${name} is enforced and counted`),
    ...without(wanted, made).map((name) => `namespace ${name} is new`),
    ...without(present, wanted).map((name) => `namespace ${name} has left`),
    ...without(wantedBindings, madeBindings).map((name) => `policy binding ${name} is missing`),
    ...without(madeBindings, wantedBindings).map((name) => `policy binding ${name} is not needed`),
    ...changedRules(tenant, owned),
  ];
}

function namesOf(wanted: string, objects: readonly LiveObject[]): string[] {
  return objects.filter(({ kind }) => kind === wanted).map(({ metadata }) => metadata.name);
}

function without(names: readonly string[], others: readonly string[]): string[] {
  return names.filter((name) => !others.includes(name));
}

const RULE_ANNOTATIONS = Object.values(KEY_RULE_ANNOTATIONS).flatMap((annotations) => Object.values(annotations));

/** Namespaces whose metadata does not say what the tenant forbids, or in what scope its host names are compared. */
function changedRules(tenant: CapsuleTenant, owned: readonly LiveObject[]): string[] {
  const { labels, annotations } = namespaceMetadata(tenant);
  return presentNamespaces(owned)
    .filter(
      ({ metadata }) =>
        metadata.labels?.[HOSTNAME_COLLISION_LABEL] !== labels?.[HOSTNAME_COLLISION_LABEL] ||
        RULE_ANNOTATIONS.some((name) => metadata.annotations?.[name] !== annotations?.[name]),
    )
    .map(({ metadata }) => `namespace ${metadata.name} has other rules`);
}
