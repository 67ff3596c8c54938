import { ApiError, isApiError, type KubernetesClient, known, type LiveObject } from "../../providers/kubernetes/client";
import { DEFINITION_TYPE, findEndingDefinitions, findForeignDefinitions } from "../contract/crd";
import { ONE_INSTALLATION } from "../contract/installation";
import { type AnyKind, kindName } from "../contract/kind";
import { MUTATION_TYPE } from "../contract/validating-policy";
import { type Configuration, usesVolume } from "./configuration";
import { NAME } from "./labels";
import { BACKEND_URL_KEY, PASSPHRASE_KEY } from "./secrets";

const DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class";
const SERVICE_MONITORS = "servicemonitors.monitoring.coreos.com";

const ACCOUNTS = { apiVersion: "v1", kind: "ServiceAccount" } as const;
const NAMESPACES = { apiVersion: "v1", kind: "Namespace" } as const;

type Reader = Pick<KubernetesClient, "get" | "list">;
/** What the cluster lacks, with a remedy; `undefined` for nothing. */
type Missing = string | undefined;

/**
 * What an installation needs and the cluster lacks, each with a remedy. What cannot be read counts as present: the
 * installation itself will report it.
 */
export async function missingPrerequisites(
  configuration: Configuration,
  kinds: readonly AnyKind[],
  client: Reader,
): Promise<string[]> {
  const { namespace, serviceMonitor, authorMayNotApprove } = configuration;
  const checks: Promise<Missing | string[]>[] = [
    anotherInstallation(configuration, client),
    closedPorts(configuration, client),
    foreignDefinitions(kinds, client),
    endingDefinitions(kinds, client),
    ...(usesVolume(configuration) ? [missingStorageClass(configuration, client)] : []),
    ...(authorMayNotApprove ? [missingMutations(client)] : []),
    ...(serviceMonitor ? [missingServiceMonitors(client)] : []),
    ...neededSecrets(configuration).map((secret) => missingData(namespace, { kind: "Secret", ...secret }, client)),
    ...authorities(configuration).map((name) =>
      missingData(namespace, { kind: "ConfigMap", name, keys: ["ca.crt"] }, client),
    ),
  ];
  const found = await Promise.all(checks.map((check) => check.catch(inOrderWhereUnseen)));
  return found.flat().filter((problem) => problem !== undefined);
}

/** What cannot be read counts as present: the installation itself will report it. */
export function inOrderWhereUnseen(error: unknown): undefined {
  if (error instanceof ApiError && ([401, 403].includes(error.status) || error.reason === "Unreachable")) return;
  throw error;
}

/** The service account of an operator shows it, as it does to the policy that guards an installation. */
async function anotherInstallation({ namespace }: Configuration, client: Reader): Promise<Missing> {
  const { items } = await client.list(ACCOUNTS, { labelSelector: `app.kubernetes.io/part-of=${NAME}` });
  const places = items
    .filter(({ metadata }) => metadata.name === NAME && metadata.namespace !== namespace)
    .map(({ metadata }) => metadata.namespace as string);
  const found = await Promise.all(places.map((place) => known(client.get(NAMESPACES, place))));
  const other = found.find((place) => place !== undefined && place.metadata.deletionTimestamp === undefined)?.metadata
    .name;
  if (other === undefined) return undefined;
  return (
    `Kindstack is installed in the namespace ${other}, ${ONE_INSTALLATION}: set namespace to ${other}, ` +
    "or uninstall that one first"
  );
}

async function foreignDefinitions(kinds: readonly AnyKind[], client: Reader): Promise<Missing> {
  const foreign = await findForeignDefinitions(client, kinds);
  if (foreign.length === 0) return undefined;
  const others = kinds.filter((kind) => !foreign.includes(kind)).map(kindName);
  return (
    `CRDs of these names were not installed by Kindstack: ${foreign.map(kindName).join(", ")}; ` +
    `set kinds to the others: ${others.join(", ") || "there are none"}`
  );
}

/** What is applied to a CRD that is being deleted goes with it. */
async function endingDefinitions(kinds: readonly AnyKind[], client: Reader): Promise<Missing> {
  const ending = (await findEndingDefinitions(client, kinds)).map(kindName);
  if (ending.length === 0) return undefined;
  return (
    `CRDs are being deleted, with all their objects: ${ending.join(", ")}; install when they are gone. If no operator runs that ` +
    "deletes the objects, install now, and apply again when the CRDs are gone"
  );
}

async function missingStorageClass({ namespace, storageClass }: Configuration, client: Reader): Promise<Missing> {
  const claim = await known(
    client.get({ apiVersion: "v1", kind: "PersistentVolumeClaim" }, `${NAME}-state`, namespace),
  );
  if (claim !== undefined) return undefined;
  const { items } = await client.list({ apiVersion: "storage.k8s.io/v1", kind: "StorageClass" });
  const suits = ({ metadata: { name, annotations } }: LiveObject) =>
    storageClass === undefined ? annotations?.[DEFAULT_CLASS] === "true" : name === storageClass;
  if (items.some(suits)) return undefined;
  const problem =
    storageClass === undefined ? "no StorageClass is the default" : `StorageClass ${storageClass} does not exist`;
  const others =
    items.length > 0 ? `there are ${items.map(({ metadata }) => metadata.name).join(", ")}` : "there is none";
  return `${problem} (${others}); set storageClass, or keep the state in a database with backendUrl`;
}

async function missingMutations(client: Reader): Promise<Missing> {
  try {
    await client.list(MUTATION_TYPE);
    return undefined;
  } catch (error) {
    if (!isApiError(error, 404)) throw error;
    return `the API server does not serve ${MUTATION_TYPE.kind} in ${MUTATION_TYPE.apiVersion}; upgrade to Kubernetes 1.36, or set authorMayNotApprove to false`;
  }
}

async function missingServiceMonitors(client: Reader): Promise<Missing> {
  const crd = await known(client.get(DEFINITION_TYPE, SERVICE_MONITORS));
  if (crd !== undefined) return undefined;
  return `CRD ${SERVICE_MONITORS} does not exist; install the Prometheus operator first, or set serviceMonitor to false`;
}

/** The Secrets that the configuration refers to and does not make, each with the keys that it must have. */
function neededSecrets(configuration: Configuration): { name: string; keys: readonly string[] }[] {
  const { stateSecret, passphrase, backendFromSecret, environmentSecrets, imagePullSecrets } = configuration;
  const { metricsSecret, previewSecret, proxy, proxySecret } = configuration;
  const certificates = [metricsSecret, previewSecret, proxy ? proxySecret : undefined].filter(
    (name) => name !== undefined,
  );
  const stateKeys = [
    ...(configuration.secretsProvider === undefined ? [PASSPHRASE_KEY] : []),
    ...(backendFromSecret ? [BACKEND_URL_KEY] : []),
  ];
  return [
    ...(passphrase === undefined && stateKeys.length > 0 ? [{ name: stateSecret, keys: stateKeys }] : []),
    ...[...environmentSecrets, ...imagePullSecrets, ...certificates].map((name) => ({ name, keys: [] })),
  ];
}

/** The ConfigMaps that the configuration refers to, with the certificates of CAs. */
function authorities({ caBundle, admission, admissionClientCa }: Configuration): string[] {
  return [caBundle, admission ? admissionClientCa : undefined].filter((name) => name !== undefined);
}

async function missingData(
  namespace: string,
  { kind, name, keys }: { kind: "Secret" | "ConfigMap"; name: string; keys: readonly string[] },
  client: Reader,
): Promise<Missing> {
  const holder = await known(client.get({ apiVersion: "v1", kind }, name, namespace));
  const wanted = keys.length === 0 ? "" : ` with ${keys.join(" and ")}`;
  if (holder === undefined) return `${kind} ${namespace}/${name} does not exist; create it${wanted}`;
  const missing = keys.filter((key) => (holder.data as Record<string, string> | undefined)?.[key] === undefined);
  return missing.length === 0 ? undefined : `${kind} ${namespace}/${name} has no ${missing.join(" and no ")}`;
}

const SLICES = { apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice" } as const;
/** The Services of clusters' DNS: Kubernetes' own and its successors, and OpenShift's. */
const DNS = "kubernetes.io/service-name in (kube-dns,coredns,dns-default)";

/** What the cluster's ports are, and the configuration's NetworkPolicy keeps the operator from. */
async function closedPorts(
  { networkPolicy, egressPorts, dnsPorts }: Configuration,
  client: Pick<KubernetesClient, "get" | "list">,
): Promise<string[]> {
  if (!networkPolicy) return [];
  const server = await known(client.get(SLICES, "kubernetes", "default"));
  const dns = (await client.list(SLICES, { labelSelector: DNS })).items;
  return [
    ...closed("the API server", "egressPorts", egressPorts, portsOf(server === undefined ? [] : [server], /^https$/)),
    ...closed("the cluster's DNS", "dnsPorts", dnsPorts, portsOf(dns, /^dns/)),
  ];
}

/** Of Pods and hosts: NetworkPolicies see connections after a Service's port has been translated. */
function portsOf(slices: readonly LiveObject[], name: RegExp): number[] {
  const ports = slices.flatMap((slice) => (slice.ports ?? []) as { name?: string; port?: number }[]);
  return [...new Set(ports.flatMap((port) => (name.test(port.name ?? "") && port.port ? [port.port] : [])))];
}

function closed(what: string, key: string, allowed: readonly number[], used: readonly number[]): string[] {
  return used
    .filter((port) => !allowed.includes(port))
    .map(
      (port) =>
        `${what} listens on port ${port}, and ${key} is ${allowed.join(", ")}; add it, or set networkPolicy to false`,
    );
}
