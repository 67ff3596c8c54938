import type { LiveObject } from "../../providers/kubernetes/client";
import { groupOf } from "../../providers/kubernetes/object-types";
import type { ClusterView } from "./cluster-view";
import type { Planned } from "./conflicts";

/** What quotas count by its plural alone, besides as `count/…`. */
const COUNTED = [
  "configmaps",
  "persistentvolumeclaims",
  "pods",
  "replicationcontrollers",
  "resourcequotas",
  "secrets",
  "services",
];

interface Creations {
  namespace: string;
  /** As quotas call what is created. */
  names: string[];
  planned: Planned[];
}

interface Quota {
  spec?: { scopes?: unknown[]; scopeSelector?: unknown };
  status?: { hard?: Record<string, string>; used?: Record<string, string> };
}

/**
 * Several creations pass a dry run each that a quota does not allow together: these fail. A quota that counts something other than
 * objects is noted.
 */
export async function checkQuotas(all: readonly Planned[], cluster: ClusterView, signal: AbortSignal): Promise<void> {
  for (const creations of await creationsOf(all, cluster)) {
    const { namespace, names, planned } = creations;
    const plans = [...new Set(planned.map(({ plan }) => plan))];
    const quotas = await cluster.quotas(namespace, signal);
    if (quotas === undefined) {
      const note = `the quotas of the namespace ${namespace} cannot be read: each resource was checked by itself`;
      for (const plan of plans) plan.notes.push(note);
      continue;
    }
    for (const quota of quotas) {
      const what = `the ResourceQuota ${quota.metadata.name} of the namespace ${namespace}`;
      const left = leftOf(quota, names);
      if (left !== undefined && planned.length > left) {
        for (const plan of plans) {
          plan.action = "failed";
          plan.errors.push(`${what} allows ${left} more ${names[0]}, and ${planned.length} are created`);
        }
      } else if (limitsMore(quota)) {
        for (const plan of plans) plan.notes.push(`${what}: each of ${planned.length} resources was checked by itself`);
      }
    }
  }
}

/** What is created more than once in one namespace. */
async function creationsOf(all: readonly Planned[], cluster: ClusterView): Promise<Creations[]> {
  const byType = new Map<string, Creations>();
  for (const planned of all) {
    for (const { inputs, shown } of planned.resources) {
      const namespace = inputs?.manifest.metadata.namespace;
      if (inputs === undefined || namespace === undefined || shown.operation !== "create" || !shown.checked) continue;
      const { apiVersion } = inputs.manifest;
      const plural = await cluster.pluralOf(inputs.manifest);
      const group = groupOf(apiVersion);
      const count = `count/${plural}${group === "" ? "" : `.${group}`}`;
      const names = group === "" && COUNTED.includes(plural) ? [plural, count] : [count];
      const id = `${namespace} ${count}`;
      const known = byType.get(id) ?? { namespace, names, planned: [] };
      byType.set(id, { ...known, planned: [...known.planned, planned] });
    }
  }
  return [...byType.values()].filter(({ planned }) => planned.length > 1);
}

/** How many more objects a quota allows; `undefined` when it does not count them. */
function leftOf(quota: LiveObject, names: readonly string[]): number | undefined {
  const { spec, status } = quota as Quota;
  if (spec?.scopes !== undefined || spec?.scopeSelector !== undefined) return undefined;
  const limits = names.flatMap((name) => {
    const hard = status?.hard?.[name];
    return hard === undefined ? [] : [Number(hard) - Number(status?.used?.[name] ?? 0)];
  });
  const left = Math.min(...limits);
  return Number.isFinite(left) ? Math.max(0, left) : undefined;
}

/** Whether a quota is about some objects alone, or about what they need. */
function limitsMore(quota: LiveObject): boolean {
  const { spec, status } = quota as Quota;
  const isScoped = spec?.scopes !== undefined || spec?.scopeSelector !== undefined;
  return (
    isScoped || Object.keys(status?.hard ?? {}).some((name) => !name.startsWith("count/") && !COUNTED.includes(name))
  );
}
