import Type from "typebox";
import { NAMESPACE_PATTERN } from "../../providers/kubernetes/protected-namespaces";
import { DEFAULT_USER_GROUP } from "../kinds/capsule-tenant/labels";
import { DEFAULT_NAMESPACE } from "./labels";
import { affinity, tolerations, topologySpreadConstraints } from "./placement";

/** Where the volume of a `file://` backend is mounted. */
export const STATE_DIRECTORY = "/var/lib/kindstack";

const NAME = { pattern: "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", maxLength: 253 };
const QUANTITY = { pattern: "^[0-9]+(\\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?$" };
const TEXT = { minLength: 1 };
/** What stands in a variable among others, with commas between them. */
const ITEM = { ...TEXT, pattern: "^[^,]+$" };
const USER_GROUPS = { default: [DEFAULT_USER_GROUP], minItems: 1 };
/** A map whose keys have defaults of their own. */
const STRICT = { additionalProperties: false, default: {} };

const choice = <const T extends string[]>(value: T[number], allowed: T, description: string) =>
  Type.Enum(allowed, { default: value, description });
const flag = (value: boolean, description: string) => Type.Boolean({ default: value, description });
const named = (value: string, description: string) => Type.String({ ...NAME, default: value, description });
const quantity = (value: string, description: string) => Type.String({ ...QUANTITY, default: value, description });
const whole = (value: number, maximum: number, description: string) =>
  Type.Integer({ default: value, minimum: 1, maximum, description });
const ports = (value: number[], description: string) =>
  Type.Array(Type.Integer({ minimum: 1, maximum: 65535 }), { default: value, minItems: 1, description });
const list = (item: Type.TStringOptions, description: string, options: Type.TArrayOptions = {}) =>
  Type.Array(Type.String(item), { default: [], description, ...options });
const texts = (description: string) => Type.Record(Type.String(), Type.String(), { default: {}, description });
const optional = (text: Type.TStringOptions, description: string) =>
  Type.Optional(Type.String({ ...text, description }));
const optionalWhole = (minimum: number, maximum: number, description: string) =>
  Type.Optional(Type.Integer({ minimum, maximum, description }));

/**
 * Every key of the project's stack configuration: `pulumi config set kindstack:<key> <value>`, or
 * `kindstack install --print --set <key>=<value>`.
 */
export const configurationSchema = Type.Object({
  install: flag(false, "`pulumi up` installs Kindstack into the cluster"),
  manifests: list(TEXT, "files or folders of custom resources that `pulumi up` runs itself, without the operator"),

  image: Type.String({ ...TEXT, description: "the operator's image; default kindstack:<version>" }),
  imagePullPolicy: choice("IfNotPresent", ["Always", "IfNotPresent", "Never"], "pull policy of the image"),
  imagePullSecrets: list(NAME, "names of Secrets for the image's registry"),
  namespace: Type.String({
    default: DEFAULT_NAMESPACE,
    pattern: "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    maxLength: 63,
    description: "the operator's namespace",
  }),
  kinds: list(
    TEXT,
    "kinds to install: names, such as tenants.multitenancy and postgreswriters, or folders or packages of your own; " +
      "by default all built-in ones",
  ),
  kindsImage: optional(
    TEXT,
    "image of folders of your own kinds, mounted beside the built-in ones; needs image volumes (Kubernetes 1.35). " +
      "Otherwise build them into the image",
  ),
  crds: flag(true, "install the CustomResourceDefinitions as well"),

  backendUrl: optional(
    { pattern: `^(postgres|s3|gs|azblob)://.|^file://${STATE_DIRECTORY}/.`, secret: true },
    `where the state is: postgres://, s3://, gs://, azblob://; default: a volume at ${STATE_DIRECTORY}`,
  ),
  backendFromSecret: flag(false, "take the backend's URL from the key backendUrl of stateSecret"),
  stateSecret: named(
    "kindstack-state",
    "Secret with the key passphrase, which encrypts secrets in the state; it must exist unless passphrase or secretsProvider is set",
  ),
  passphrase: optional({ ...TEXT, secret: true }, "creates stateSecret with this passphrase"),
  secretsProvider: optional(
    { pattern: "^(awskms|azurekeyvault|gcpkms|hashivault)://." },
    "key service in place of a passphrase, such as awskms://alias/kindstack",
  ),
  storageSize: quantity("4Gi", "size of the volume for the state"),
  storageClass: optional(NAME, "storage class of that volume"),
  keepState: flag(
    true,
    "`pulumi destroy` keeps the namespace, the volume and the Secret of the state; to delete them too, set false " +
      "and run `pulumi up` first",
  ),
  environmentSecrets: list(NAME, "Secrets whose keys become variables of the operator, such as a cloud's credentials"),
  serviceAccountAnnotations: texts("annotations of the service account, such as a cloud's identity"),

  postgresSecret: named(
    "kindstack-postgres",
    "Secret with PSQL_HOST, PSQL_DBNAME, PSQL_USER, PSQL_PASSWORD, …, which is mounted; without it no PostgresWriter works",
  ),
  postgresHost: optional(TEXT, "creates postgresSecret, with this host and the next five keys"),
  postgresPort: whole(5432, 65535, "the database's port"),
  postgresDatabase: optional(TEXT, "the database's name"),
  postgresUser: optional(TEXT, "the user"),
  postgresPassword: optional({ ...TEXT, secret: true }, "the user's password"),
  postgresSslMode: choice(
    "verify-full",
    ["disable", "require", "verify-ca", "verify-full"],
    "TLS mode of the connection",
  ),
  postgresTables: optional(
    {},
    "the tables that PostgresWriters may write, such as students,team-a=app.*; *.* allows all, an empty text none; required with that kind",
  ),
  clusterName: optional(
    TEXT,
    "the cluster's name in the records of rows and of the state's backend: a cluster that is rebuilt under its name keeps its rows; default: its UID",
  ),
  protectedNamespaces: list(
    { pattern: NAMESPACE_PATTERN, maxLength: 63 },
    "further namespaces that no tenant may have, besides kube-*, default and the operator's; * matches any characters",
  ),
  allowedGroups: list(
    ITEM,
    "groups of everybody, such as system:authenticated, that may administer namespaces of tenants",
  ),
  memcachedImage: optional(TEXT, "the image of all Memcacheds"),

  admission: flag(true, "webhooks, policies and roles of Capsule's Tenant"),
  admissionSources: list(
    { pattern: "^[0-9a-fA-F.:]+/[0-9]+$" },
    "CIDRs of the API servers; the NetworkPolicy then admits only them to the webhooks",
  ),
  capsuleUserGroups: list(ITEM, "groups whose members create namespaces through Capsule's Tenants", USER_GROUPS),
  cordonExempt: list(ITEM, "users and groups that are exempt in cordoned tenants of Capsule"),
  deleteYounger: flag(
    false,
    "of two namespaces or Ingresses of Capsule's tenants that came at once where one is allowed, delete the younger one",
  ),
  previews: flag(
    true,
    "serve previews, history, outputs and states to accounts with the right to see them, so that CI needs only a token",
  ),
  previewNames: list(NAME, "host names of previews from outside the cluster, added to their certificate"),
  previewSecret: optional(NAME, "TLS Secret of previews; default: a certificate that the operator creates and renews"),
  replicas: whole(1, 100, "number of operators; more than one needs a backend that all of them reach"),
  shards: whole(
    1,
    999,
    "number of shards, which the replicas share; with 1, all replicas but one wait. Use 8 for each replica",
  ),
  concurrency: whole(8, 64, "maximum number of objects in work at the same time in a replica"),
  mode: optional(
    { pattern: "^[A-Za-z0-9.,= -]+$" },
    "mode of all kinds, or of each, such as Propose or podsets=Observe; by default changes are applied",
  ),
  authorMayNotApprove: flag(
    false,
    "the author of a change may not approve it: the API server records who changes an object; needs Kubernetes 1.36",
  ),
  rollout: optionalWhole(
    1,
    100,
    "percentage of a kind's objects that a new version updates before the next ones; by default all at once",
  ),
  rolloutMaxFailures: optionalWhole(1, 100_000, "number of failed objects that stops such a rollout; default 1"),
  updateTimeout: optionalWhole(
    1,
    86_400,
    "seconds after which an update is interrupted and retried, such as 3600 for a cloud's databases; default 600",
  ),
  gracePeriod: optionalWhole(0, 3_600, "seconds that running updates have when a Pod ends; default 20"),
  engineIdle: optionalWhole(0, 86_400, "seconds without an update after which the engine exits; default 60"),
  relistInterval: optionalWhole(1, 86_400, "seconds between two full lists of all objects; default 1800"),
  kindTimeout: optionalWhole(
    1,
    86_400,
    "seconds for a function of a package's kind, besides its providers; default 60",
  ),
  kindMemory: optionalWhole(32, 65_536, "MiB of memory for the process of each package of kinds; default 256"),
  kindIdle: optionalWhole(1, 86_400, "seconds for which an idle process of a package is kept; default 30"),
  kindFiles: list(
    { pattern: "^/[^\\s,]+$" },
    "files and folders that packages of kinds may write, outside of the folders of kinds",
  ),
  kindAddons: flag(false, "packages of kinds may load native add-ons, which are held to no limits"),
  leaseDuration: optionalWhole(1, 3_600, "seconds without renewal after which other replicas take over; default 15"),
  renewDeadline: optionalWhole(1, 3_600, "seconds without renewal after which a replica stops its work; default 10"),
  retryPeriod: optionalWhole(1, 3_600, "seconds between two renewals of a Lease; default 2"),
  driftInterval: whole(
    30,
    86_400,
    "interval in seconds at which rows are compared with their objects; with more than 100,000 rows, a few minutes",
  ),
  logLevel: choice("info", ["trace", "debug", "info", "warn", "error"], "log level"),
  resources: Type.Object(
    {
      requests: Type.Object({ cpu: quantity("100m", "CPU"), memory: quantity("256Mi", "memory") }, STRICT),
      limits: Type.Object({ cpu: Type.Optional(Type.String(QUANTITY)), memory: quantity("1Gi", "memory") }, STRICT),
    },
    { ...STRICT, default: {}, description: "requests and limits of the operator" },
  ),
  nodeSelector: texts("labels of the nodes that Pods may run on"),
  tolerations,
  affinity,
  topologySpreadConstraints,
  priorityClassName: Type.String({
    pattern: `^$|${NAME.pattern}`,
    maxLength: NAME.maxLength,
    default: "",
    description: "PriorityClass of Pods, such as system-cluster-critical",
  }),
  fixedUserIds: flag(
    true,
    "Pods run as the image's user and group 65532; with false, the cluster chooses them, as OpenShift does",
  ),
  admissionClientCa: optional(
    NAME,
    "ConfigMap with the key ca.crt: the CA of the API servers' client certificates, without which admission is refused",
  ),
  caBundle: optional(
    NAME,
    "ConfigMap with the key ca.crt: certificates of CAs that are trusted besides the public ones, for the state, the database and plugins",
  ),
  aggregateRoles: flag(
    false,
    "the ClusterRoles view and edit allow to view and edit objects that make Kubernetes objects in their own namespace",
  ),
  labels: texts("further labels of everything that is installed"),
  annotations: texts("further annotations of everything that is installed, except Pods"),
  podAnnotations: texts("further annotations of Pods"),

  metricsSecret: optional(
    NAME,
    "TLS Secret of /metrics, such as from cert-manager; default: a new certificate at each start",
  ),
  proxy: flag(false, "a proxy that lets owners of tenants list their namespaces"),
  proxyNames: list(NAME, "host names of the proxy from outside the cluster, added to its certificate"),
  proxySecret: optional(NAME, "TLS Secret of the proxy; default: a certificate that the proxy creates and renews"),
  proxyUserGroups: list(TEXT, "groups whose members list their own namespaces through the proxy", USER_GROUPS),
  proxyRefusedGroups: list(TEXT, "groups whose members the proxy refuses", {
    minItems: 1,
    default: ["system:masters"],
  }),
  proxyMaxConnections: whole(1000, 100_000, "maximum number of connections of each proxy"),
  serviceMonitor: flag(false, "a ServiceMonitor for the Prometheus operator"),
  prometheusRule: flag(false, "alerts, as a PrometheusRule of the Prometheus operator"),
  grafanaDashboard: flag(false, "a dashboard, as a ConfigMap with the label grafana_dashboard"),
  networkPolicy: flag(true, "a NetworkPolicy for the operator's ports and for the connections below"),
  egressPorts: ports([443, 6443], "TCP ports of the API server and the backend; the database's port is added"),
  dnsPorts: ports([53], "ports of the cluster's DNS, where its Pods listen, such as 5353 on OpenShift"),
});
export type Configuration = Type.Static<typeof configurationSchema>;

/** What is read of a key's schema besides its validation. */
export interface KeySchema {
  type?: string;
  description: string;
  default?: unknown;
  /** Its value is not shown in messages. */
  secret?: boolean;
}

/** The schema of each key, in the order in which they are declared. */
export const keySchemas: ReadonlyMap<string, KeySchema> = new Map(
  Object.entries<KeySchema>(configurationSchema.properties as never),
);

/** Whether the state is kept in a volume of the operator's own. */
export function usesVolume({ backendUrl, backendFromSecret }: Configuration): boolean {
  return backendUrl === undefined ? !backendFromSecret : backendUrl.startsWith("file://");
}
