import type { types } from "@pulumi/kubernetesx";
import type { Manifest } from "../../providers/kubernetes/client";
import { hasPassword } from "../../providers/passwords";
import { DELETE_YOUNGER } from "../kinds/capsule-tenant/labels";
import { admissionRole } from "./access";
import { type Configuration, STATE_DIRECTORY, usesVolume } from "./configuration";
import { deployment, options, WITHDRAWAL_SECONDS } from "./deployment";
import { LABELS, NAME, SELECTOR } from "./labels";
import { BACKEND_URL_KEY, PASSPHRASE_KEY, secretsDigest } from "./secrets";

export const HTTP_PORT = 8080;
export const METRICS_PORT = 8443;
export const ADMISSION_PORT = 9443;
export const PREVIEW_PORT = 9444;

const WORK_DIRECTORY = "/var/run/kindstack";
const SECRET_DIRECTORY = "/etc/kindstack";
/** Of the database's Secret: it is mounted, so that the operator sees another password without a restart. */
const POSTGRES_DIRECTORY = "/etc/kindstack-postgres";
/** Of kinds that are not built in; see the Dockerfile. */
const KINDS_DIRECTORY = "/app/kinds";
const METRICS_CERTIFICATE = "/etc/kindstack-metrics";
const PREVIEW_CERTIFICATE = "/etc/kindstack-preview";
const GRACE_SECONDS = 20;
/** After the grace period, an update that is interrupted has 10 s to save; the rest is written. */
const SAVE_SECONDS = 25;
/** Certificates of CAs that are trusted besides the public ones. */
const CA_DIRECTORY = "/etc/kindstack-ca";
const CLIENT_CA_DIRECTORY = "/etc/kindstack-client-ca";

/** Flags of the operator that have no value by default. */
const FLAGS = [
  ["rollout-max-failures", "rolloutMaxFailures"],
  ["update-timeout", "updateTimeout"],
  ["grace-period", "gracePeriod"],
  ["engine-idle", "engineIdle"],
  ["relist-interval", "relistInterval"],
  ["kind-timeout", "kindTimeout"],
  ["kind-memory", "kindMemory"],
  ["kind-idle", "kindIdle"],
  ["lease-duration", "leaseDuration"],
  ["renew-deadline", "renewDeadline"],
  ["retry-period", "retryPeriod"],
] as const;

/** The operator, its volume for the state when it is kept in one, and what keeps both available. */
export async function workload(configuration: Configuration): Promise<Manifest[]> {
  const { replicas, affinity, topologySpreadConstraints, gracePeriod = GRACE_SECONDS } = configuration;
  const digest = secretsDigest(configuration);
  const operator = await deployment(configuration, {
    name: NAME,
    selector: SELECTOR,
    replicas,
    // Only one Pod can mount a volume; without one, the new Pod is ready before the old one leaves.
    strategy: usesVolume(configuration)
      ? { type: "Recreate" }
      : { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
    // Pods read Secrets when they start; another digest makes the Deployment start new ones.
    ...(digest !== undefined && { annotations: { "kindstack.dev/secrets": digest } }),
    pod: {
      terminationGracePeriodSeconds: WITHDRAWAL_SECONDS + gracePeriod + SAVE_SECONDS,
      affinity,
      topologySpreadConstraints,
    },
    container: container(configuration),
  });
  return usesVolume(configuration) ? [stateVolumeClaim(configuration), ...operator] : operator;
}

function stateVolumeClaim({ namespace, storageSize, storageClass }: Configuration): Manifest {
  return {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: { name: `${NAME}-state`, namespace, labels: LABELS },
    spec: {
      accessModes: ["ReadWriteOnce"],
      resources: { requests: { storage: storageSize } },
      ...(storageClass !== undefined && { storageClassName: storageClass }),
    },
  };
}

function container(configuration: Configuration): types.Container {
  const { admission, previews, environmentSecrets, metricsSecret, previewSecret, admissionClientCa } = configuration;
  const { namespace, previewNames, resources } = configuration;
  const service = `${NAME}.${namespace}.svc`;
  return {
    args: [
      "run",
      ...options({
        kinds: configuration.kinds.toSorted().join(",") || undefined,
        concurrency: configuration.concurrency,
        shards: configuration.shards,
        rollout: configuration.rollout,
        mode: configuration.mode,
        "author-may-not-approve": configuration.authorMayNotApprove || undefined,
        "drift-interval": configuration.driftInterval,
        ...Object.fromEntries(FLAGS.map(([flag, key]) => [flag, configuration[key]])),
        "kind-addons": configuration.kindAddons || undefined,
        "kind-files": configuration.kindFiles.length > 0 ? configuration.kindFiles : undefined,
        "metrics-port": METRICS_PORT,
        "metrics-certificate": metricsSecret && METRICS_CERTIFICATE,
        ...(admission && {
          "admission-port": ADMISSION_PORT,
          "admission-service": NAME,
          "admission-owner": admissionRole(configuration.namespace),
          "admission-client-ca-file": admissionClientCa && `${CLIENT_CA_DIRECTORY}/ca.crt`,
        }),
        ...(previews && {
          "preview-port": PREVIEW_PORT,
          "preview-names": [service, `${service}.cluster.local`, "localhost", ...previewNames],
          "preview-certificate": previewSecret && PREVIEW_CERTIFICATE,
        }),
      }),
    ],
    env: environment(configuration),
    envFrom: environmentSecrets.map((name) => ({ secretRef: { name } })),
    ports: {
      http: HTTP_PORT,
      metrics: METRICS_PORT,
      ...(admission && { admission: ADMISSION_PORT }),
      ...(previews && { previews: PREVIEW_PORT }),
    },
    resources,
    volumeMounts: volumeMounts(configuration),
  };
}

function volumeMounts(configuration: Configuration): types.VolumeMount[] {
  const { stateSecret, postgresSecret, secretsProvider, kindsImage, metricsSecret, previewSecret, caBundle } =
    configuration;
  const { admission, admissionClientCa } = configuration;
  const passphrase = {
    secretName: stateSecret,
    items: [{ key: PASSPHRASE_KEY, path: PASSPHRASE_KEY }],
    defaultMode: 0o440,
    ...(secretsProvider !== undefined && { optional: true }),
  };
  const certificate = (secretName: string | undefined) => secretName && { secret: { secretName, defaultMode: 0o440 } };
  const state = usesVolume(configuration) && { persistentVolumeClaim: { claimName: `${NAME}-state` } };
  const volumes = [
    ["work", WORK_DIRECTORY, { emptyDir: { sizeLimit: "1Gi" } }],
    ["tmp", "/tmp", { emptyDir: { sizeLimit: "256Mi" } }],
    ["passphrase", SECRET_DIRECTORY, { secret: passphrase }],
    ["postgres", POSTGRES_DIRECTORY, { secret: { secretName: postgresSecret, defaultMode: 0o440, optional: true } }],
    ["kinds", KINDS_DIRECTORY, kindsImage && { image: { reference: kindsImage } }],
    ["metrics-certificate", METRICS_CERTIFICATE, certificate(metricsSecret)],
    ["preview-certificate", PREVIEW_CERTIFICATE, certificate(previewSecret)],
    ["ca", CA_DIRECTORY, caBundle && { configMap: { name: caBundle } }],
    ["client-ca", CLIENT_CA_DIRECTORY, admission && admissionClientCa && { configMap: { name: admissionClientCa } }],
    ["state", STATE_DIRECTORY, state],
  ] as const;
  return volumes.flatMap(([name, destPath, source]) => (source ? [{ volume: { name, ...source }, destPath }] : []));
}

function environment(configuration: Configuration): types.EnvMap {
  const { backendUrl, backendFromSecret, stateSecret, admission, capsuleUserGroups } = configuration;
  const inSecret = backendFromSecret || (backendUrl !== undefined && hasPassword(backendUrl));
  const variables = {
    PULUMI_BACKEND_URL: inSecret
      ? { secretKeyRef: { name: stateSecret, key: BACKEND_URL_KEY } }
      : (backendUrl ?? `file://${STATE_DIRECTORY}/state`),
    PULUMI_CONFIG_PASSPHRASE_FILE: `${SECRET_DIRECTORY}/${PASSPHRASE_KEY}`,
    KINDSTACK_SECRETS_PROVIDER: configuration.secretsProvider,
    KINDSTACK_WORK_DIR: WORK_DIRECTORY,
    KINDSTACK_LOG_LEVEL: configuration.logLevel,
    KINDSTACK_LOG_FORMAT: "json",
    KINDSTACK_CAPSULE_USER_GROUPS: admission && capsuleUserGroups.join(","),
    KINDSTACK_CAPSULE_CORDON_EXEMPT: admission && configuration.cordonExempt.join(","),
    [DELETE_YOUNGER]: admission && configuration.deleteYounger && "true",
    PSQL_DIRECTORY: POSTGRES_DIRECTORY,
    KINDSTACK_CLUSTER: configuration.clusterName,
    KINDSTACK_PROTECTED_NAMESPACES: configuration.protectedNamespaces.join(","),
    KINDSTACK_ALLOWED_GROUPS: configuration.allowedGroups.join(","),
    MEMCACHED_IMAGE: configuration.memcachedImage,
    // Node.js, and Go: the engine and most plugins.
    NODE_EXTRA_CA_CERTS: configuration.caBundle && `${CA_DIRECTORY}/ca.crt`,
    SSL_CERT_DIR: configuration.caBundle && `/etc/ssl/certs:${CA_DIRECTORY}`,
  };
  // What is empty or `undefined` is not set.
  const set = Object.entries(variables).flatMap(([name, value]) => (value ? [[name, value]] : []));
  // Without the variable, every table would be allowed.
  return { ...Object.fromEntries(set), KINDSTACK_POSTGRES_TABLES: configuration.postgresTables ?? "" };
}
