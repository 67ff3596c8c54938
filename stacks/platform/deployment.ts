import type { PodBuilder, types } from "@pulumi/kubernetesx";
import type { Manifest } from "../../providers/kubernetes/client";
import type { Configuration } from "./configuration";
import { LABELS } from "./labels";

/** The image's own user; see the Dockerfile. */
export const USER_ID = 65532;

/** Until then, nodes have learned that a Pod is no endpoint of its Services any more, and only then its listeners close. */
export const WITHDRAWAL_SECONDS = 5;

const probe = (path: string) => ({ httpGet: { path, port: "http" } });
/** The first probe comes when the process listens, and waits for the rest: none fails at the start. */
const PROBES = {
  startupProbe: {
    ...probe("/healthz"),
    initialDelaySeconds: 1,
    periodSeconds: 1,
    timeoutSeconds: 10,
    failureThreshold: 60,
  },
  livenessProbe: { ...probe("/healthz"), periodSeconds: 20, timeoutSeconds: 5, failureThreshold: 3 },
  readinessProbe: { ...probe("/readyz"), periodSeconds: 5, timeoutSeconds: 10 },
};
const POD_SECURITY = { runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } };
const CONTAINER_SECURITY = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  capabilities: { drop: ["ALL"] },
};

/** A program in the operator's image. */
interface Program {
  /** Of the Deployment and of its service account. */
  name: string;
  /** The labels that select its Pods. */
  selector: Readonly<Record<string, string>>;
  replicas: number;
  strategy?: object;
  /** Of its Pods. */
  annotations?: Record<string, string>;
  pod: Omit<types.PodSpec, "containers" | "securityContext">;
  /** It answers probes on its port `http`. Volumes, if it has any, belong to the group of the image's user. */
  container: types.Container;
}

/** A Deployment that passes the restricted Pod security standard, and a budget that lets its nodes be drained. */
export async function deployment(
  configuration: Configuration,
  { name, selector, replicas, strategy, annotations, pod, container }: Program,
): Promise<Manifest[]> {
  const { namespace, image, imagePullPolicy, imagePullSecrets, podAnnotations } = configuration;
  const { nodeSelector, tolerations, priorityClassName, labels, fixedUserIds } = configuration;
  // Loaded here: it brings the whole of Pulumi's SDKs along, and only an installation needs it.
  const { PodBuilder } = await import("@pulumi/kubernetesx");
  const { name: containerName = name, resources, volumeMounts = [], ...rest } = container;
  const builder = new PodBuilder({
    serviceAccountName: name,
    automountServiceAccountToken: true,
    ...pod,
    nodeSelector,
    tolerations,
    ...(priorityClassName && { priorityClassName }),
    imagePullSecrets: imagePullSecrets.map((secret) => ({ name: secret })),
    securityContext: {
      ...POD_SECURITY,
      ...(fixedUserIds && { runAsUser: USER_ID, runAsGroup: USER_ID }),
      ...(fixedUserIds && container.volumeMounts && { fsGroup: USER_ID }),
    },
    containers: [
      {
        name: containerName,
        image,
        imagePullPolicy,
        ...rest,
        ...PROBES,
        lifecycle: { preStop: { sleep: { seconds: WITHDRAWAL_SECONDS } } },
        resources,
        securityContext: CONTAINER_SECURITY,
        volumeMounts,
      },
    ],
  });
  return [
    {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name, namespace, labels: LABELS },
      spec: {
        replicas,
        ...(strategy && { strategy }),
        revisionHistoryLimit: 3,
        selector: { matchLabels: selector },
        template: {
          metadata: withoutBlanks({
            labels: { ...labels, ...LABELS, ...selector },
            annotations: { ...podAnnotations, ...annotations },
          }),
          spec: await podSpecOf(builder),
        },
      },
    },
    {
      apiVersion: "policy/v1",
      kind: "PodDisruptionBudget",
      metadata: { name, namespace, labels: LABELS },
      // With one Pod, anything stricter would keep a node from ever being drained.
      spec: { maxUnavailable: 1, unhealthyPodEvictionPolicy: "AlwaysAllow", selector: { matchLabels: selector } },
    },
  ];
}

/** The builder's Pod spec, without its entries for absent values. */
function podSpecOf({ podSpec }: PodBuilder): Promise<object> {
  return new Promise((resolve) => {
    podSpec.apply((spec) => {
      resolve(withoutBlanks({ ...spec, containers: (spec.containers as object[]).map(withoutBlanks) }));
    });
  });
}

/** Without empty lists and maps. Those within say something: a selector that is empty selects everything. */
function withoutBlanks(fields: object): object {
  const isBlank = (item: unknown) => typeof item === "object" && item !== null && Object.keys(item).length === 0;
  return Object.fromEntries(Object.entries(fields).filter(([, item]) => item !== undefined && !isBlank(item)));
}

/** Options of the command line: `--name value`, or several values; none for what is `undefined` or an empty list. */
export function options(values: Record<string, string | number | true | readonly string[] | undefined>): string[] {
  return Object.entries(values).flatMap(([name, value]) => {
    if (value === true) return [`--${name}`];
    const words = value === undefined ? [] : [value].flat().map(String);
    return words.length === 0 ? [] : [`--${name}`, ...words];
  });
}
