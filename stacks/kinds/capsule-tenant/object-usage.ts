import type { V1Container, V1PersistentVolumeClaimSpec, V1PodSpec, V1ServiceSpec } from "@kubernetes/client-node";
import type { Manifest } from "../../../providers/kubernetes/index";
import type { AdmissionRequest } from "../../contract/index";
import { type Amount, type Amounts, max, parseAmount } from "./quantity";
import type { ResourceQuotaItem } from "./schema";

/*
 * What an object counts in ResourceQuotas, as Kubernetes' own evaluators count it (pkg/quota/v1/evaluator/core). Devices of
 * ResourceClaims are not counted here.
 */

/** By the resource's name in a quota. */
export type Usage = Map<string, Amount>;

const ONE = parseAmount(1);
/** Of the core group: what is counted by its plain name as well. */
const COUNTED_BY_NAME = [
  "pods",
  "services",
  "persistentvolumeclaims",
  "configmaps",
  "secrets",
  "replicationcontrollers",
  "resourcequotas",
];
/** Of other resources, limits are not counted. */
const LIMITED = ["cpu", "memory", "ephemeral-storage"];
const STORAGE_CLASS_SUFFIX = ".storageclass.storage.k8s.io/";
const STORAGE_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class";

/** Containers and amounts of a Pod that are added up; one with more has to do without room. */
const MAX_AMOUNTS = 5_000;

/** What a request adds to each resource, where it adds something. @throws RangeError for a Pod that is too large */
export function growthOf({ resource, object, oldObject }: AdmissionRequest): Usage {
  if (object === undefined) return new Map();
  const before: Usage = oldObject === undefined ? new Map() : usageOf(resource, oldObject);
  const growth = [...usageOf(resource, object)].map(([name, amount]): [string, Amount] => {
    return [name, amount - (before.get(name) ?? 0n)];
  });
  return new Map(growth.filter(([, amount]) => amount > 0n));
}

export function usageOf({ group, name }: AdmissionRequest["resource"], object: Manifest): Usage {
  const usage: Usage = new Map([[`count/${group === "" ? name : `${name}.${group}`}`, ONE]]);
  if (group !== "") return usage;
  if (COUNTED_BY_NAME.includes(name)) usage.set(name, ONE);
  if (name === "pods") addPod(usage, object.spec as V1PodSpec);
  if (name === "services") addService(usage, object.spec as V1ServiceSpec);
  if (name === "persistentvolumeclaims") addClaim(usage, object);
  return usage;
}

/** Whether a quota with these scopes counts an object. Of Pods that name other namespaces for affinity, it is not known. */
export function isInScope(item: ResourceQuotaItem, resource: string, object: Manifest): boolean {
  const { scopes = [], scopeSelector } = item;
  const selectors = [
    ...scopes.map((scopeName) => ({ scopeName, operator: "Exists", values: [] })),
    ...(scopeSelector?.matchExpressions ?? []),
  ];
  if (selectors.length > 0 && resource !== "pods") return false;
  const pod = object.spec as V1PodSpec;
  return selectors.every(({ scopeName, operator, values = [] }) => {
    if (scopeName === "Terminating") return isTerminating(pod);
    if (scopeName === "NotTerminating") return !isTerminating(pod);
    if (scopeName === "BestEffort") return isBestEffort(pod);
    if (scopeName === "NotBestEffort") return !isBestEffort(pod);
    if (scopeName !== "PriorityClass") return false;
    const { priorityClassName = "" } = pod;
    if (operator === "Exists") return priorityClassName !== "";
    if (operator === "DoesNotExist") return priorityClassName === "";
    return values.includes(priorityClassName) === (operator === "In");
  });
}

function isTerminating({ activeDeadlineSeconds }: V1PodSpec): boolean {
  return activeDeadlineSeconds !== undefined && activeDeadlineSeconds >= 0;
}

function isBestEffort({ containers = [], initContainers = [], resources }: V1PodSpec): boolean {
  return [...containers, ...initContainers, { resources }].every(({ resources: { requests, limits } = {} }) =>
    [requests, limits].every((list) => ["cpu", "memory"].every((name) => parseAmount(list?.[name] ?? 0) === 0n)),
  );
}

function addPod(usage: Usage, pod: V1PodSpec): void {
  if (amountsIn(pod) > MAX_AMOUNTS) throw new RangeError(`a Pod of more than ${MAX_AMOUNTS} containers and amounts`);
  const requests = podTotal(pod, "requests");
  const limits = podTotal(pod, "limits");
  for (const [name, amount] of parsed(pod.overhead)) {
    requests.set(name, (requests.get(name) ?? 0n) + amount);
    const limit = limits.get(name) ?? 0n;
    if (limit > 0n) limits.set(name, limit + amount);
  }
  for (const [name, amount] of requests) {
    if (!name.includes("/")) usage.set(name, amount);
    usage.set(`requests.${name}`, amount);
  }
  for (const name of LIMITED) {
    const limit = limits.get(name);
    if (limit !== undefined) usage.set(`limits.${name}`, limit);
  }
}

function amountsIn({ containers = [], initContainers = [], overhead }: V1PodSpec): number {
  const resources = [...containers, ...initContainers].map(({ resources = {} }) => resources);
  const lists = [overhead, ...resources.flatMap(({ requests, limits }) => [requests, limits])];
  return lists.reduce((count, list = {}) => count + 1 + Object.keys(list).length, 0);
}

/** Init containers run one after another before the other containers; sidecars among them keep running. */
function podTotal({ containers = [], initContainers = [], resources }: V1PodSpec, what: "requests" | "limits"): Usage {
  const listOf = (of: V1Container) => parsed(of.resources?.[what]);
  const running: Usage = new Map();
  const most: Usage = new Map();
  for (const container of initContainers) {
    const own = listOf(container);
    for (const [name, amount] of own) {
      most.set(name, max(most.get(name) ?? 0n, (running.get(name) ?? 0n) + amount));
    }
    if (container.restartPolicy === "Always") addAll(running, own);
  }
  for (const container of containers) addAll(running, listOf(container));
  for (const [name, amount] of most) running.set(name, max(running.get(name) ?? 0n, amount));
  for (const [name, amount] of parsed(resources?.[what])) running.set(name, amount);
  return running;
}

function addService(usage: Usage, { type, ports = [], allocateLoadBalancerNodePorts }: V1ServiceSpec): void {
  const isBalancer = type === "LoadBalancer";
  if (isBalancer) usage.set("services.loadbalancers", ONE);
  if (type !== "NodePort" && !isBalancer) return;
  const named = ports.filter(({ nodePort = 0 }) => nodePort !== 0);
  const count = isBalancer && allocateLoadBalancerNodePorts === false ? named.length : ports.length;
  usage.set("services.nodeports", parseAmount(count));
}

function addClaim(usage: Usage, { metadata, spec }: Manifest): void {
  const { storageClassName = "", resources } = spec as V1PersistentVolumeClaimSpec;
  const storageClass = metadata.annotations?.[STORAGE_CLASS_ANNOTATION] ?? storageClassName;
  const counted: Usage = new Map([["persistentvolumeclaims", ONE]]);
  const { storage } = resources?.requests ?? {};
  if (storage !== undefined) counted.set("requests.storage", parseAmount(storage));
  for (const [name, amount] of counted) {
    usage.set(name, amount);
    if (storageClass !== "") usage.set(`${storageClass}${STORAGE_CLASS_SUFFIX}${name}`, amount);
  }
}

function parsed(list: Amounts = {}): Usage {
  return new Map(Object.entries(list).map(([name, quantity]) => [name, parseAmount(quantity)]));
}

function addAll(total: Usage, list: Usage): void {
  for (const [name, amount] of list) total.set(name, (total.get(name) ?? 0n) + amount);
}
