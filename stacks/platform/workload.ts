import type { Input, Output } from "@pulumi/pulumi/output";
import type { Manifest } from "../../providers/kubernetes/client";
import { ADMISSION_ROLE } from "./access";
import { type Configuration, hasPassword, needsPassphrase, STATE_DIRECTORY, usesVolume } from "./configuration";
import { LABELS, NAME, SELECTOR } from "./labels";
import { BACKEND_URL_KEY, PASSPHRASE_KEY, secretsDigest } from "./secrets";

export const HTTP_PORT = 8080;
export const METRICS_PORT = 8443;
export const ADMISSION_PORT = 9443;
export const PREVIEW_PORT = 9444;
/** The image's own user; see the Dockerfile. */
export const USER_ID = 65532;

const WORK_DIRECTORY = "/var/run/kindstack";
const SECRET_DIRECTORY = "/etc/kindstack";
/** Of kinds that are not built in; see the Dockerfile. */
const KINDS_DIRECTORY = "/app/kinds";
const METRICS_CERTIFICATE = "/etc/kindstack-metrics";
const PREVIEW_CERTIFICATE = "/etc/kindstack-preview";
/** Running updates may continue for 20 s, one that is interrupted has 10 s to save; then the rest is written. */
const TERMINATION_SECONDS = 45;

const probe = (path: string) => ({ httpGet: { path, port: "http" } });
/** Of a container that answers them on its port `http`. */
export const PROBES = {
  startupProbe: { ...probe("/healthz"), periodSeconds: 2, failureThreshold: 30 },
  livenessProbe: { ...probe("/healthz"), periodSeconds: 20, timeoutSeconds: 5, failureThreshold: 3 },
  readinessProbe: { ...probe("/readyz"), periodSeconds: 5, timeoutSeconds: 5 },
};
export const POD_SECURITY = {
  runAsNonRoot: true,
  runAsUser: USER_ID,
  runAsGroup: USER_ID,
  seccompProfile: { type: "RuntimeDefault" },
};
export const CONTAINER_SECURITY = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  capabilities: { drop: ["ALL"] },
};

/** Replicas on one node would be gone together. */
const APART = {
  podAntiAffinity: {
    preferredDuringSchedulingIgnoredDuringExecution: [
      {
        weight: 100,
        podAffinityTerm: { topologyKey: "kubernetes.io/hostname", labelSelector: { matchLabels: SELECTOR } },
      },
    ],
  },
};

/** The operator, its volume for the state when it is kept in one, and what keeps both available. */
export async function workload(configuration: Configuration): Promise<Manifest[]> {
  const { namespace } = configuration;
  return [
    ...(usesVolume(configuration) ? [stateVolumeClaim(configuration)] : []),
    {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: NAME, namespace, labels: LABELS },
      spec: {
        replicas: configuration.replicas,
        // A volume can be had by one Pod only; else the new one is ready to take over when the old one leaves.
        strategy: usesVolume(configuration)
          ? { type: "Recreate" }
          : { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
        revisionHistoryLimit: 3,
        selector: { matchLabels: SELECTOR },
        template: {
          metadata: { labels: { ...LABELS, ...SELECTOR }, ...secretsAnnotation(configuration) },
          spec: await podSpec(configuration),
        },
      },
    },
    disruptionBudget(NAME, namespace, SELECTOR),
  ];
}

export function disruptionBudget(name: string, namespace: string, matchLabels: object): Manifest {
  return {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: { name, namespace, labels: LABELS },
    // With one Pod, anything stricter would keep a node from ever being drained.
    spec: { maxUnavailable: 1, unhealthyPodEvictionPolicy: "AlwaysAllow", selector: { matchLabels } },
  };
}

/** Pods read Secrets when they start; another digest makes the Deployment start new ones. */
function secretsAnnotation(configuration: Configuration): { annotations?: Record<string, string> } {
  const digest = secretsDigest(configuration);
  return digest === undefined ? {} : { annotations: { "kindstack.dev/secrets": digest } };
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

/** The operator's Pod, by kubernetesx's PodBuilder: a volume stands where it is mounted, variables are a map. */
async function podSpec(configuration: Configuration): Promise<unknown> {
  // Loaded here: it brings the whole of Pulumi's SDKs along, and only an installation needs it.
  const { PodBuilder } = await import("@pulumi/kubernetesx");
  const { image, imagePullPolicy, imagePullSecrets, environmentSecrets, postgresSecret, metricsSecret } = configuration;
  const { stateSecret, stackPartitions, previewSecret, kindsImage } = configuration;
  const builder = new PodBuilder({
    serviceAccountName: NAME,
    automountServiceAccountToken: true,
    terminationGracePeriodSeconds: TERMINATION_SECONDS,
    ...(configuration.replicas > 1 && { affinity: APART }),
    ...(imagePullSecrets.length > 0 && { imagePullSecrets: imagePullSecrets.map((name) => ({ name })) }),
    securityContext: { ...POD_SECURITY, fsGroup: USER_ID },
    containers: [
      {
        name: NAME,
        image,
        imagePullPolicy,
        args: [
          "run",
          ...(configuration.kinds.length > 0 ? ["--kinds", configuration.kinds.join(",")] : []),
          ...["--concurrency", String(configuration.concurrency)],
          ...["--shards", String(configuration.shards)],
          ...(stackPartitions === undefined ? [] : ["--stack-partitions", String(stackPartitions)]),
          ...(configuration.rollout === undefined ? [] : ["--rollout", String(configuration.rollout)]),
          ...["--drift-interval", String(configuration.driftInterval)],
          ...["--metrics-port", String(METRICS_PORT)],
          ...(metricsSecret === undefined ? [] : ["--metrics-certificate", METRICS_CERTIFICATE]),
          ...admissionArguments(configuration),
          ...previewArguments(configuration),
        ],
        env: environment(configuration),
        envFrom: [
          { secretRef: { name: postgresSecret, optional: true } },
          ...environmentSecrets.map((name) => ({ secretRef: { name } })),
        ],
        ports: {
          http: HTTP_PORT,
          metrics: METRICS_PORT,
          ...(configuration.admission && { admission: ADMISSION_PORT }),
          ...(configuration.previews && { previews: PREVIEW_PORT }),
        },
        ...PROBES,
        resources: {
          requests: { cpu: configuration.cpuRequest, memory: configuration.memoryRequest },
          limits: { memory: configuration.memoryLimit },
        },
        securityContext: CONTAINER_SECURITY,
        volumeMounts: [
          { volume: { name: "work", emptyDir: { sizeLimit: "1Gi" } }, destPath: WORK_DIRECTORY },
          { volume: { name: "tmp", emptyDir: { sizeLimit: "256Mi" } }, destPath: "/tmp" },
          {
            volume: {
              name: "passphrase",
              secret: {
                secretName: stateSecret,
                items: [{ key: PASSPHRASE_KEY, path: PASSPHRASE_KEY }],
                defaultMode: 0o440,
                ...(!needsPassphrase(configuration) && { optional: true }),
              },
            },
            destPath: SECRET_DIRECTORY,
          },
          ...(kindsImage === undefined
            ? []
            : [{ volume: { name: "kinds", image: { reference: kindsImage } }, destPath: KINDS_DIRECTORY }]),
          ...certificateVolume("metrics-certificate", metricsSecret, METRICS_CERTIFICATE),
          ...certificateVolume("preview-certificate", previewSecret, PREVIEW_CERTIFICATE),
          ...(usesVolume(configuration)
            ? [
                {
                  volume: { name: "state", persistentVolumeClaim: { claimName: `${NAME}-state` } },
                  destPath: STATE_DIRECTORY,
                },
              ]
            : []),
        ],
      },
    ],
  });
  return withoutBlanks(await plainValue(builder.podSpec));
}

function certificateVolume(name: string, secretName: string | undefined, destPath: string) {
  return secretName === undefined ? [] : [{ volume: { name, secret: { secretName, defaultMode: 0o440 } }, destPath }];
}

function admissionArguments({ admission }: Configuration): string[] {
  return admission
    ? ["--admission-port", String(ADMISSION_PORT), "--admission-service", NAME, "--admission-owner", ADMISSION_ROLE]
    : [];
}

function previewArguments({ previews, previewNames, previewSecret, namespace }: Configuration): string[] {
  if (!previews) return [];
  const service = `${NAME}.${namespace}.svc`;
  return [
    ...["--preview-port", String(PREVIEW_PORT)],
    ...["--preview-names", service, `${service}.cluster.local`, "localhost", ...previewNames],
    ...(previewSecret === undefined ? [] : ["--preview-certificate", PREVIEW_CERTIFICATE]),
  ];
}

type Variable = Input<string | { secretKeyRef: { name: string; key: string } }>;

function environment(configuration: Configuration): Record<string, Variable> {
  const { backendUrl, backendFromSecret, stateSecret, secretsProvider } = configuration;
  const { postgresTables, postgresTakeoverSeconds, memcachedImage, logLevel, protectedNamespaces } = configuration;
  const inSecret = backendFromSecret || (backendUrl !== undefined && hasPassword(backendUrl));
  return {
    PULUMI_BACKEND_URL: inSecret
      ? { secretKeyRef: { name: stateSecret, key: BACKEND_URL_KEY } }
      : (backendUrl ?? `file://${STATE_DIRECTORY}/state`),
    PULUMI_CONFIG_PASSPHRASE_FILE: `${SECRET_DIRECTORY}/${PASSPHRASE_KEY}`,
    ...(secretsProvider !== undefined && { KINDSTACK_SECRETS_PROVIDER: secretsProvider }),
    KINDSTACK_WORK_DIR: WORK_DIRECTORY,
    KINDSTACK_LOG_LEVEL: logLevel,
    KINDSTACK_LOG_FORMAT: "json",
    ...(configuration.admission && { KINDSTACK_CAPSULE_USER_GROUPS: configuration.capsuleUserGroups.join(",") }),
    ...(postgresTables !== undefined && { KINDSTACK_POSTGRES_TABLES: postgresTables }),
    ...(postgresTakeoverSeconds !== undefined && {
      KINDSTACK_POSTGRES_TAKEOVER_SECONDS: String(postgresTakeoverSeconds),
    }),
    ...(protectedNamespaces.length > 0 && { KINDSTACK_PROTECTED_NAMESPACES: protectedNamespaces.join(",") }),
    ...(memcachedImage !== undefined && { MEMCACHED_IMAGE: memcachedImage }),
  };
}

/** What an output that depends on no resource is. */
function plainValue<T>(output: Output<T>): Promise<T> {
  return new Promise((resolve) => {
    output.apply((value) => resolve(value as T));
  });
}

/** The builder writes down what is not there as empty lists and as `undefined`. */
function withoutBlanks(value: object): object {
  return JSON.parse(
    JSON.stringify(value, (_key, part) => (Array.isArray(part) && part.length === 0 ? undefined : part)),
  );
}
