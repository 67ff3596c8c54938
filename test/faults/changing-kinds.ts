import fc from "fast-check";
import type { Manifest } from "../../providers/kubernetes/client";
import { type AnyKind, kindApiVersion } from "../../stacks/contract/kind";
import { capsuleTenant } from "../../stacks/kinds/capsule-tenant/kind";
import { memcached } from "../../stacks/kinds/memcached/kind";
import { podSet } from "../../stacks/kinds/podset/kind";
import { postgresWriter } from "../../stacks/kinds/postgres-writer/kind";
import { tenant } from "../../stacks/kinds/tenant/kind";
import { namespace, namespaceOf } from "../e2e/manifests";
import { type Broken, brokenSpecs, type Overrides, type SpecSchema, validSpecs } from "./spec-arbitrary";

/*
 * What is changed in the tests with generated specs. A spec may have words in it that mean what is known only when an
 * object is made: see `withWords`.
 */

/** The name of the object itself. */
const NAME = "zzname";
/** The table that exists; with `_2` a second one, and with `_none` one that does not exist. */
const TABLE = "zztable";
/** What the operator protects from tenants besides what it always does. */
export const PROTECTED = "forbidden-*";

export interface ChangingKind {
  kind: AnyKind;
  /** Specs of which updates succeed. */
  sound: fc.Arbitrary<unknown>;
  /** Specs that the API server takes; an update may fail. */
  accepted: fc.Arbitrary<unknown>;
  /** Specs that it refuses. */
  refused: fc.Arbitrary<Broken>;
  /** Where objects are, by their name; they are in no namespace when it is left out. */
  namespace?: (name: string) => string;
  /** What has to be there before the object. */
  prerequisites?: (name: string) => Manifest[];
}

function changingKind(
  kind: AnyKind,
  {
    sound = {},
    accepted = {},
    ...rest
  }: { sound?: Overrides; accepted?: Overrides } & Pick<ChangingKind, "namespace" | "prerequisites">,
): ChangingKind {
  const schema = kind.spec as SpecSchema;
  return {
    kind,
    sound: validSpecs(schema, { ...accepted, ...sound }),
    accepted: validSpecs(schema, accepted),
    refused: brokenSpecs(schema, { ...accepted, ...sound }),
    ...rest,
  };
}

const ownNamespaces = fc.constantFrom(NAME, `${NAME}-a`, `${NAME}-b`);
const labelName = fc.stringMatching(/^[a-z][a-z0-9]{0,8}$/);
const labelKey = fc.oneof(
  labelName,
  labelName.map((name) => `example.com/${name}`),
);
const labelValue = fc.stringMatching(/^([a-zA-Z0-9]([-a-zA-Z0-9_.]{0,10}[a-zA-Z0-9])?)?$/);
const labels = (path: string): Overrides => ({ [`${path}.~`]: labelKey, [`${path}.*`]: labelValue });
const expression = fc.constantFrom("", "^a.*$", "[a-z]+\\.example\\.com");
const selector = fc.constantFrom<object>(
  {},
  { matchLabels: { tier: "web" } },
  { matchExpressions: [{ key: "tier", operator: "In", values: ["web", "db"] }] },
  { matchExpressions: [{ key: "tier", operator: "Exists" }] },
);
const peer = fc.oneof(
  selector.map((podSelector) => ({ podSelector })),
  fc.record({ podSelector: selector, namespaceSelector: selector }),
  fc.constantFrom(
    { ipBlock: { cidr: "0.0.0.0/0" } },
    { ipBlock: { cidr: "192.168.1.1/12", except: ["192.168.7.0/24"] } },
  ),
);
const port = fc.constantFrom(
  {},
  { port: 80 },
  { protocol: "UDP", port: 53 },
  { protocol: "TCP", port: 8000, endPort: 8080 },
  { port: "http" },
);

/** What no rule of the CRD refuses; the rules are not part of the schema that values are generated from. */
const CAPSULE_ACCEPTED: Overrides = {
  owner: fc.oneof(
    fc.record({ kind: fc.constantFrom("User", "Group"), name: fc.stringMatching(/^[a-z]{1,12}$/) }),
    fc.constant({ kind: "ServiceAccount", name: "system:serviceaccount:default:robot" }),
  ),
  "externalServiceIPs.allowed.*": fc.oneof(fc.ipV4(), fc.constantFrom("10.0.0.0/8", "2001:db8::/32", "::1")),
  "namespacesMetadata.forbiddenLabels.deniedRegex": expression,
  "namespacesMetadata.forbiddenAnnotations.deniedRegex": expression,
  "namespacesMetadata.allowedLabels.allowedRegex": expression,
  "namespacesMetadata.allowedAnnotations.allowedRegex": expression,
  "ingressHostnames.allowedRegex": expression,
  "priorityClasses.allowedRegex": expression,
  "ingressClasses.allowedRegex": expression,
  "storageClasses.allowedRegex": expression,
  "containerRegistries.allowedRegex": expression,
};
const CAPSULE_SOUND: Overrides = {
  ...labels("namespacesMetadata.additionalLabels"),
  "namespacesMetadata.additionalAnnotations.~": labelKey,
  ...labels("servicesMetadata.additionalLabels"),
  "servicesMetadata.additionalAnnotations.~": labelKey,
  ...labels("nodeSelector"),
  "limitRanges.*": fc.constantFrom(
    { limits: [] },
    { limits: [{ type: "Pod", max: { cpu: "1", memory: "1Gi" }, min: { cpu: "50m" } }] },
    { limits: [{ type: "Container", default: { cpu: "200m" }, defaultRequest: { cpu: "100m" }, max: { cpu: 2 } }] },
    { limits: [{ type: "PersistentVolumeClaim", max: { storage: "10Gi" }, min: { storage: "1Gi" } }] },
  ),
  "networkPolicies.*.podSelector": selector,
  "networkPolicies.*.ingress.*.from.*": peer,
  "networkPolicies.*.ingress.*.ports.*": port,
  "networkPolicies.*.egress.*.to.*": peer,
  "networkPolicies.*.egress.*.ports.*": port,
  "resourceQuotas.*": fc.constantFrom(
    {},
    { hard: { pods: "10" } },
    { hard: { pods: 9, "requests.cpu": "2", "count/deployments.apps": "3" } },
    { hard: { "limits.memory": "16Gi" }, scopes: ["NotTerminating"] },
    { hard: { pods: "5" }, scopes: ["BestEffort"] },
    {
      hard: { pods: "5" },
      scopeSelector: { matchExpressions: [{ scopeName: "PriorityClass", operator: "In", values: ["high"] }] },
    },
  ),
  "additionalRoleBindings.*": fc.record({
    clusterRoleName: fc.constantFrom("view", "edit"),
    subjects: fc.uniqueArray(
      fc.constantFrom(
        { kind: "User", name: "alice" },
        { kind: "Group", name: "viewers", apiGroup: "rbac.authorization.k8s.io" },
        { kind: "ServiceAccount", name: "robot", namespace: "default" },
      ),
      { minLength: 1, maxLength: 3 },
    ),
  }),
};

const replicas = fc.nat(3);

export const changingKinds: readonly ChangingKind[] = [
  changingKind(tenant, {
    sound: { "namespaces.*": ownNamespaces },
    accepted: {
      "namespaces.*": fc.oneof(
        ownNamespaces,
        fc.stringMatching(/^[a-z0-9]{1,20}$/).map((end) => `${NAME}-${end}`),
        fc.constant(PROTECTED.replace("*", NAME)),
      ),
    },
  }),
  changingKind(capsuleTenant, {
    sound: CAPSULE_SOUND,
    accepted: CAPSULE_ACCEPTED,
    prerequisites: (name) => [namespaceOf(name, `${name}-blue`)],
  }),
  changingKind(postgresWriter, {
    sound: { table: fc.constantFrom(TABLE, `${TABLE}_2`) },
    accepted: {
      table: fc.oneof(
        fc.constantFrom(TABLE, `${TABLE}_none`, "pg_class"),
        validSpecs((postgresWriter.spec as SpecSchema).properties?.table ?? {}),
      ),
    },
    namespace: (name) => `${name}-rows`,
    prerequisites: (name) => [namespace(`${name}-rows`)],
  }),
  changingKind(podSet, { accepted: { replicas }, namespace: () => "default" }),
  changingKind(memcached, { namespace: () => "default" }),
];

/** An object of a kind with a generated spec. */
export function generatedObject(
  { kind, namespace }: ChangingKind,
  { name, table, spec }: { name: string; table: string; spec: unknown },
): Manifest {
  const place = namespace?.(name);
  return {
    apiVersion: kindApiVersion(kind),
    kind: kind.kind,
    metadata: { name, ...(place !== undefined && { namespace: place }) },
    spec: withWords(spec, { name, table }) as object,
  };
}

/** A spec with the words in it that mean an object's name and the tables. */
export function withWords(spec: unknown, { name, table }: { name: string; table: string }): unknown {
  return JSON.parse(JSON.stringify(spec).replaceAll(NAME, name).replaceAll(TABLE, table));
}
