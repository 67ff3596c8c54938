import fc from "fast-check";
import type { Configuration } from "../../../stacks/platform/configuration";

/** Keys that are no values of the chart: those of `pulumi up`, the release's, and those that make Secrets. */
type Other =
  | ("install" | "manifests" | "namespace" | "passphrase" | "backendUrl")
  | ("postgresHost" | "postgresDatabase" | "postgresUser" | "postgresPassword" | "postgresSslMode");

/** Names that YAML reads as something else, unless they are quoted. */
const name = fc.constantFrom("a", "registry", "true", "no", "null", "1e3", "0x10", "012", "2024-01-01");
const text = fc.constantFrom("a", "x: y # z", "{{ .Values.image }}", "'\"", "no", "0", "1_000", "~", "[a]", "&a", " b");
const item = fc.constantFrom("system:authenticated", "yes", "1.5", "{{ a }}", "a'b\"c");
const quantity = fc.constantFrom("1", "100m", "1.5Gi");
const number = (maximum: number) => fc.integer({ min: 1, max: maximum });
const list = <T>(of: fc.Arbitrary<T>) => fc.uniqueArray(of, { maxLength: 3 });
const texts = fc.dictionary(fc.constantFrom("example.com/a", "app.kubernetes.io/name", "team", "y"), text, {
  maxKeys: 3,
});
const affinity = (weight: number) => ({
  podAntiAffinity: {
    preferredDuringSchedulingIgnoredDuringExecution: [{ weight, podAffinityTerm: { topologyKey: "zone" } }],
  },
});
const constraint = {
  maxSkew: 1,
  topologyKey: "zone",
  whenUnsatisfiable: "ScheduleAnyway",
  labelSelector: { matchLabels: { a: "b" } },
} as const;

/** Allowed values of each key that the chart has. */
const VALUES: { [K in Exclude<keyof Configuration, Other>]: fc.Arbitrary<NonNullable<Configuration[K]>> } = {
  image: fc.constantFrom("registry.example.com/kindstack:2", "a@sha256:0", "1"),
  imagePullPolicy: fc.constantFrom("Always", "IfNotPresent", "Never"),
  imagePullSecrets: list(name),
  kinds: fc.constantFrom<string[][]>(
    ["podsets"],
    ["tenants.capsule"],
    ["tenants.multitenancy", "memcacheds.cache.example.com"],
    ["all"],
  ),
  kindsImage: text,
  crds: fc.boolean(),
  backendFromSecret: fc.boolean(),
  stateSecret: name,
  secretsProvider: fc.constantFrom("awskms://alias/kindstack", "hashivault://x?a={{ b }}#c"),
  storageSize: quantity,
  storageClass: name,
  keepState: fc.boolean(),
  environmentSecrets: list(name),
  serviceAccountAnnotations: texts,
  postgresSecret: name,
  postgresPort: number(65535),
  postgresTables: fc.constantFrom("", "*", "team-a=app.*,students", "1"),
  clusterName: text,
  protectedNamespaces: list(fc.constantFrom("cert-manager", "*-system", "1")),
  allowedGroups: list(item),
  memcachedImage: text,
  admission: fc.boolean(),
  admissionSources: list(fc.constantFrom("10.0.0.0/8", "fd00::/8", "1:2/3")),
  capsuleUserGroups: fc.uniqueArray(item, { minLength: 1, maxLength: 3 }),
  cordonExempt: list(item),
  deleteYounger: fc.boolean(),
  previews: fc.boolean(),
  previewNames: list(name),
  previewSecret: name,
  replicas: number(3),
  shards: number(999),
  concurrency: number(64),
  mode: fc.constantFrom("Propose", "podsets=Observe", "1"),
  authorMayNotApprove: fc.boolean(),
  rollout: number(100),
  rolloutMaxFailures: number(100),
  updateTimeout: number(86_400),
  gracePeriod: fc.constantFrom(0, 1, 600),
  engineIdle: fc.constantFrom(0, 600),
  relistInterval: number(86_400),
  kindTimeout: number(86_400),
  kindMemory: fc.integer({ min: 32, max: 65_536 }),
  kindIdle: number(86_400),
  kindFiles: list(fc.constantFrom("/data", "/x")),
  kindAddons: fc.boolean(),
  leaseDuration: number(3_600),
  renewDeadline: number(3_600),
  retryPeriod: number(3_600),
  driftInterval: number(86_400),
  logLevel: fc.constantFrom("trace", "debug", "info", "warn", "error"),
  resources: fc.record({
    requests: fc.record({ cpu: quantity, memory: quantity }),
    limits: fc.record({ cpu: quantity, memory: quantity }, { requiredKeys: ["memory"] }),
  }),
  nodeSelector: texts,
  tolerations: fc.constantFrom([], [{ key: "infra", operator: "Exists" as const, effect: "NoSchedule" as const }]),
  // Helm merges maps into the default ones, and replaces lists.
  affinity: number(100).map(affinity),
  topologySpreadConstraints: fc.constantFrom([], [constraint]),
  priorityClassName: fc.constantFrom("", "system-cluster-critical", "1"),
  fixedUserIds: fc.boolean(),
  admissionClientCa: name,
  caBundle: name,
  aggregateRoles: fc.boolean(),
  labels: texts,
  annotations: texts,
  podAnnotations: texts,
  metricsSecret: name,
  proxy: fc.boolean(),
  proxyNames: list(name),
  proxySecret: name,
  proxyRefusedGroups: fc.uniqueArray(text, { minLength: 1, maxLength: 3 }),
  proxyMaxConnections: number(100_000),
  proxyUserGroups: fc.uniqueArray(text, { minLength: 1, maxLength: 3 }),
  serviceMonitor: fc.boolean(),
  prometheusRule: fc.boolean(),
  grafanaDashboard: fc.boolean(),
  networkPolicy: fc.boolean(),
  dnsPorts: fc.uniqueArray(number(65535), { minLength: 1, maxLength: 2 }),
  egressPorts: fc.uniqueArray(number(65535), { minLength: 1, maxLength: 3 }),
};

export const valueKeys = Object.keys(VALUES);

type Values = Partial<Configuration>;

/** Some of the values of a chart that may stand together. */
export const someValues: fc.Arbitrary<Values> = fc
  .record(VALUES, { requiredKeys: [] })
  .map((values): Values => values as Values)
  .filter(({ replicas = 1, backendFromSecret }) => replicas === 1 || backendFromSecret === true)
  .filter(({ proxy, kinds = ["all"] }) => !proxy || kinds.some((kind) => kind === "all" || /capsule/.test(kind)));
