import { RE2JS } from "re2js";
import { type Manifest, protectedNamespaces } from "../../../../providers/kubernetes/index";
import { policyBinding, validatingPolicy } from "../../../contract/index";
import { ADMINISTERS_TENANTS, isMember, userGroups } from "../admission/user-groups";
import { NODE_SELECTOR_ANNOTATION, TENANT_LABEL } from "../labels";
import { KEY_PATTERNS, KEY_RULE_ANNOTATIONS, METADATA_MAPS, type MetadataMap } from "../namespace-metadata";
import { IS_CONTROLLER_OF_KUBERNETES } from "./managed-objects";

const NAME = "capsule-namespaces";

const mapOf = (object: string, map: MetadataMap) => `(${object} == null ? {} : ${object}.metadata.?${map}.orValue({}))`;
const metadataValue = (object: string, map: MetadataMap, key: string) =>
  `(${object} == null ? '' : ${object}.metadata.?${map}[?${JSON.stringify(key)}].orValue(''))`;
const isUnchanged = (map: MetadataMap, key: string) =>
  `${metadataValue("object", map, key)} == ${metadataValue("oldObject", map, key)}`;
const tenantReferences = (object: string) =>
  `${object} == null ? [] : ${object}.metadata.?ownerReferences.orValue([])` +
  ".filter(owner, owner.kind == 'Tenant' && owner.apiVersion.startsWith('capsule.clastix.io/')).map(owner, owner.uid)";

/** Of the keys of kindstack.dev, none is added, changed or removed. */
const keepsKindstackKeys = (map: MetadataMap) => {
  const [before, after] = [mapOf("oldObject", map), mapOf("object", map)];
  return (
    `${after}.all(key, !key.startsWith('kindstack.dev/') || (key in ${before} && ${before}[key] == ${after}[key])) && ` +
    `${before}.all(key, !key.startsWith('kindstack.dev/') || key in ${after})`
  );
};

/** Who may replace any namespace runs the cluster, or a part of it. Members of the user groups may only `patch`. */
const ADMINISTERS_NAMESPACES = "authorizer.group('').resource('namespaces').check('update').allowed()";

/** In CEL: whether the user has a right in the namespace itself, such as tenants' owners have in their own. */
const mayInNamespace = (verb: string) =>
  `authorizer.group('').resource('namespaces').namespace(request.name).name(request.name).check('${verb}').allowed()`;

const listOf = (object: string, list: string) => `(${object} == null ? [] : ${object}.metadata.?${list}.orValue([]))`;

/**
 * Guards the tenant of a namespace, the protected names, and what may be changed in a tenant's namespace. It applies to
 * every namespace, since a tenant's label on one that is not a tenant's would be theft. Labels can be changed through
 * the subresources, too.
 */
export function namespacePolicy(): Manifest[] {
  // Members of the groups do not choose the tenant of what they create: the webhook has done so.
  const isAssigned = `(request.operation == 'CREATE' && ${isMember(userGroups())})`;
  const by = `'the operator protects ${protectedNamespaces().join(", ")} (KINDSTACK_PROTECTED_NAMESPACES)'`;
  const policy = validatingPolicy(NAME, {
    rules: [
      { apiGroups: [""], resources: ["namespaces", "namespaces/status", "namespaces/finalize"], scope: "Cluster" },
    ],
    variables: {
      tenant: metadataValue("oldObject", "labels", TENANT_LABEL),
      ownersBefore: tenantReferences("oldObject"),
      ownersAfter: tenantReferences("object"),
      isOwner: `${isMember(userGroups())} && !${ADMINISTERS_TENANTS} && !${ADMINISTERS_NAMESPACES}`,
      // By now the name is known, also one that was to be generated.
      isProtected: `object != null && object.metadata.name.matches(${JSON.stringify(protectedNames())})`,
      ...refusedKeys("labels"),
      ...refusedKeys("annotations"),
    },
    validations: [
      {
        expression: `!variables.isProtected || !${isAssigned} || ${ADMINISTERS_TENANTS}`,
        messageExpression: `'the namespace ' + object.metadata.name + ' cannot be a tenant\\'s: ' + ${by}`,
      },
      {
        expression:
          `!variables.isProtected || ((${metadataValue("object", "labels", TENANT_LABEL)} == '' || ${isUnchanged("labels", TENANT_LABEL)})` +
          " && variables.ownersAfter.all(uid, uid in variables.ownersBefore))",
        messageExpression: `'the namespace ' + object.metadata.name + ' cannot be given to a tenant: ' + ${by}`,
      },
      {
        expression: `${isUnchanged("labels", TENANT_LABEL)} || ${isAssigned} || ${ADMINISTERS_TENANTS}`,
        messageExpression: `'the label ${TENANT_LABEL} says whose a namespace is; it cannot be set, changed or removed' + (variables.tenant == '' ? '' : ': this namespace is of the tenant ' + variables.tenant)`,
      },
      {
        expression: `variables.ownersAfter.all(uid, uid in variables.ownersBefore) || ${ADMINISTERS_TENANTS}`,
        messageExpression: `'a namespace cannot be owned by a Tenant: the label ${TENANT_LABEL} says whose it is'`,
      },
      {
        expression: `request.operation != 'UPDATE' || !variables.isOwner || (variables.tenant != '' && ${mayInNamespace("delete")}) || ${mayInNamespace("update")}`,
        messageExpression:
          "'the namespace ' + request.name + ' is of no tenant of yours, or you have no rights in it yet'",
      },
      {
        // Else a namespace would not end with its tenant, or before it. The garbage collector removes references to what is gone.
        expression:
          `(request.operation == 'CREATE' ? !variables.isOwner || size(${listOf("object", "ownerReferences")}) == 0 : ` +
          `variables.tenant == '' || ${listOf("object", "ownerReferences")} == ${listOf("oldObject", "ownerReferences")}) || ` +
          `${IS_CONTROLLER_OF_KUBERNETES} || ${ADMINISTERS_TENANTS}`,
        messageExpression: "'a tenant\\'s namespace ends with its tenant: it can have no other owner'",
      },
      {
        // Those of the specification are the namespace controller's. An owner may give the right to patch to others.
        expression:
          `(request.operation == 'CREATE' ? !variables.isOwner : variables.tenant == '') || ` +
          `(${listOf("object", "finalizers")} == ${listOf("oldObject", "finalizers")} && ` +
          `object.?spec.?finalizers.orValue([]).all(one, one == 'kubernetes' || (oldObject != null && one in oldObject.?spec.?finalizers.orValue([])))) || ` +
          `${IS_CONTROLLER_OF_KUBERNETES} || ${ADMINISTERS_TENANTS} || ${ADMINISTERS_NAMESPACES}`,
        messageExpression: "'a tenant\\'s namespace ends with its tenant: finalizers can be neither set nor removed'",
      },
      {
        expression: `(${keepsKindstackKeys("labels")} && ${keepsKindstackKeys("annotations")}) || ${ADMINISTERS_TENANTS}`,
        messageExpression: "'labels and annotations of kindstack.dev are set by Kindstack alone'",
      },
      {
        expression: `variables.tenant == '' || ${isUnchanged("annotations", NODE_SELECTOR_ANNOTATION)} || ${ADMINISTERS_TENANTS}`,
        messageExpression: `'the annotation ${NODE_SELECTOR_ANNOTATION} follows the nodeSelector of the tenant ' + variables.tenant`,
      },
      ...METADATA_MAPS.map((map) => ({
        expression: `size(variables.refused_${map}) == 0 || ${ADMINISTERS_TENANTS} || ${ADMINISTERS_NAMESPACES}`,
        messageExpression: `'the ${map} ' + variables.refused_${map}.join(', ') + ' of a namespace of the tenant ' + variables.tenant + ' cannot be changed by its owner'`,
      })),
    ],
  });
  return [policy, policyBinding(NAME, NAME)];
}

/** The protected names as one expression: in the patterns, `*` is any text. */
function protectedNames(): string {
  const patterns = protectedNamespaces().map((pattern) =>
    pattern
      .split("*")
      .map((text) => RE2JS.quote(text))
      .join(".*"),
  );
  return `^(${patterns.join("|")})$`;
}

/** Keys that an update sets, changes or removes against the rules; what the tenant adds to these stands in annotations. */
function refusedKeys(map: MetadataMap): Record<string, string> {
  const [before, after] = [mapOf("oldObject", map), mapOf("object", map)];
  const changed = (one: string, other: string) =>
    `${one}.filter(key, !(key in ${other}) || ${one}[key] != ${other}[key])`;
  const { forbidden, allowed } = KEY_RULE_ANNOTATIONS[map];
  const expression = (key: string) => metadataValue("oldObject", "annotations", key);
  const matches = (regex: string) => `(${regex} != '' && key.matches(${regex}))`;
  const isReserved = `(key.matches(${JSON.stringify(KEY_PATTERNS.reserved)}) && !key.matches(${JSON.stringify(KEY_PATTERNS.unreserved)}))`;
  return {
    [`forbidden_${map}`]: expression(forbidden),
    [`allowed_${map}`]: expression(allowed),
    [`refused_${map}`]:
      `request.operation != 'UPDATE' || variables.tenant == '' ? [] : (${changed(after, before)} + ${changed(before, after)})` +
      `.filter(key, (${isReserved} || ${matches(`variables.forbidden_${map}`)}) && ` +
      `(key.matches(${JSON.stringify(KEY_PATTERNS.ownership)}) || !${matches(`variables.allowed_${map}`)}))`,
  };
}
