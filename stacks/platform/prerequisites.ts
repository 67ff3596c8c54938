import { ApiError, type KubernetesClient, type LiveObject } from "../../providers/kubernetes/client";
import { DEFINITION_TYPE, findForeignDefinitions } from "../contract/crd";
import { type AnyKind, kindName } from "../contract/kind";
import { type Configuration, needsPassphrase, usesVolume } from "./configuration";
import { NAME } from "./labels";
import { chosenKinds } from "./manifests";
import { BACKEND_URL_KEY, PASSPHRASE_KEY } from "./secrets";

const DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class";
const SERVICE_MONITORS = "servicemonitors.monitoring.coreos.com";

type Reader = Pick<KubernetesClient, "get" | "list" | "resourceType">;

/**
 * What an installation needs and the cluster does not have, each with the way out; otherwise it would wait in silence for
 * what never comes. What may not be read, or a cluster that cannot be reached, counts as in order: the installation itself
 * finds out.
 */
export async function missingPrerequisites(
  configuration: Configuration,
  kinds: readonly AnyKind[],
  client: Reader,
): Promise<string[]> {
  const found = await Promise.all(
    [
      () => foreignDefinitions(configuration, kinds, client),
      () => missingStorageClass(configuration, client),
      () => missingServiceMonitors(configuration, client),
      ...neededSecrets(configuration).map((secret) => () => missingSecret(configuration, secret, client)),
    ].map((check) => check().catch(inOrderWhereUnseen)),
  );
  return found.filter((problem) => problem !== undefined);
}

function inOrderWhereUnseen(error: unknown): undefined {
  if (error instanceof ApiError && ([401, 403].includes(error.status) || error.reason === "Unreachable")) return;
  throw error;
}

async function foreignDefinitions(
  configuration: Configuration,
  kinds: readonly AnyKind[],
  client: Reader,
): Promise<string | undefined> {
  const chosen = chosenKinds(configuration, kinds);
  const foreign = await findForeignDefinitions(client, chosen);
  if (foreign.length === 0) return undefined;
  const others = chosen.filter((kind) => !foreign.includes(kind)).map(kindName);
  return (
    `CRDs of these names were not installed by Kindstack: ${foreign.map(kindName).join(", ")}; ` +
    `set kinds to the others: ${others.join(", ") || "there are none"}`
  );
}

async function missingStorageClass(configuration: Configuration, client: Reader): Promise<string | undefined> {
  if (!usesVolume(configuration)) return undefined;
  const { namespace, storageClass } = configuration;
  const claim = await client.get({ apiVersion: "v1", kind: "PersistentVolumeClaim" }, `${NAME}-state`, namespace);
  if (claim !== undefined) return undefined;
  const classes = await client.list({ apiVersion: "storage.k8s.io/v1", kind: "StorageClass" });
  const names = classes.items.map(({ metadata }) => metadata.name);
  const known = names.length > 0 ? `there are ${names.join(", ")}` : "there is none";
  const out = `set storageClass, or keep the state in a database with backendUrl`;
  if (storageClass !== undefined) {
    return names.includes(storageClass) ? undefined : `StorageClass ${storageClass} does not exist (${known}); ${out}`;
  }
  const isDefault = ({ metadata }: LiveObject) => metadata.annotations?.[DEFAULT_CLASS] === "true";
  return classes.items.some(isDefault) ? undefined : `no StorageClass is the default (${known}); ${out}`;
}

async function missingServiceMonitors({ serviceMonitor }: Configuration, client: Reader): Promise<string | undefined> {
  if (!serviceMonitor) return undefined;
  const crd = await client.get(DEFINITION_TYPE, SERVICE_MONITORS);
  if (crd !== undefined) return undefined;
  return `CRD ${SERVICE_MONITORS} does not exist; install the Prometheus operator first, or set serviceMonitor to false`;
}

/** A Secret that the configuration refers to and does not make, with the keys that it must have. */
interface NeededSecret {
  name: string;
  keys: readonly string[];
}

function neededSecrets(configuration: Configuration): NeededSecret[] {
  const { stateSecret, passphrase, backendFromSecret, environmentSecrets, imagePullSecrets } = configuration;
  const certificates = [configuration.metricsSecret, configuration.previewSecret].filter((name) => name !== undefined);
  const stateKeys = [
    ...(needsPassphrase(configuration) ? [PASSPHRASE_KEY] : []),
    ...(backendFromSecret ? [BACKEND_URL_KEY] : []),
  ];
  const others = [...environmentSecrets, ...imagePullSecrets, ...certificates];
  return [
    ...(passphrase === undefined && stateKeys.length > 0 ? [{ name: stateSecret, keys: stateKeys }] : []),
    ...others.map((name) => ({ name, keys: [] })),
  ];
}

async function missingSecret(
  { namespace }: Configuration,
  { name, keys }: NeededSecret,
  client: Reader,
): Promise<string | undefined> {
  const secret = await client.get({ apiVersion: "v1", kind: "Secret" }, name, namespace);
  const wanted = keys.length === 0 ? "" : ` with ${keys.join(" and ")}`;
  if (secret === undefined) return `Secret ${namespace}/${name} does not exist; create it${wanted}`;
  const missing = keys.filter((key) => (secret.data as Record<string, string> | undefined)?.[key] === undefined);
  return missing.length === 0 ? undefined : `Secret ${namespace}/${name} has no ${missing.join(" and no ")}`;
}
