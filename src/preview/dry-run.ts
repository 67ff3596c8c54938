import pLimit from "p-limit";
import { ApiError, type LiveObject, type Manifest } from "../../providers/kubernetes/client";
import { MESSAGES } from "../../providers/kubernetes/messages";
import { groupOf, isSecret, typeName } from "../../providers/kubernetes/object-types";
import { holds, MASKED, NOT_KNOWN } from "../../providers/literal";
import type { PlannedResource } from "../plan/effects";
import { appliedFields } from "../plan/fields";
import { type ClusterView, NO_AUTHOR, type Verdict, verdictOf } from "./cluster-view";
import type { Planned } from "./conflicts";
import type { Made } from "./prerequisites";
import { NO_OBJECT } from "./report";

const AT_ONCE = 8;
/** For one dry run, as a webhook may take 30 s, and for all of a report's. */
const TIMEOUTS = { oneMs: 10_000, allMs: 60_000 };

const OVER: Verdict = { type: "unknown", why: "the time for dry runs was over" };

/**
 * Sends the Kubernetes objects of all plans as dry runs, so that what the API server would refuse is a failure here. Each
 * resource says that it was checked, or why not.
 */
export async function checkPlans(
  all: readonly Planned[],
  cluster: ClusterView,
  made: Made,
  timeouts = TIMEOUTS,
): Promise<void> {
  const deadline = AbortSignal.timeout(timeouts.allMs);
  const limit = pLimit(AT_ONCE);
  const checks = all.flatMap(({ plan, resources }) =>
    resources.map(async (resource) => {
      if (["delete", "release", "orphan"].includes(resource.shown.operation)) return;
      const why = resource.shown.notChecked ?? uncheckable(resource, cluster);
      if (why !== undefined) {
        resource.shown.notChecked = why;
        return;
      }
      const verdict = await limit(() => {
        if (deadline.aborted) return OVER;
        const signal = AbortSignal.any([deadline, AbortSignal.timeout(timeouts.oneMs)]);
        return check(resource, cluster, signal, made);
      });
      if (verdict.type === "unknown") resource.shown.notChecked = verdict.why;
      else resource.shown.checked = true;
      if (verdict.type === "invalid") {
        plan.action = "failed";
        plan.errors.push(`${resource.shown.name}: ${verdict.message}`);
      }
    }),
  );
  await Promise.all(checks);
  await checkQuotas(all, cluster, deadline);
}

/** Why the API server cannot be asked about a resource; `undefined` when it can. */
function uncheckable(resource: PlannedResource, cluster: ClusterView): string | undefined {
  const { inputs, live, effect, refused } = resource;
  if (inputs === undefined) return NO_OBJECT;
  if (cluster.unreachable !== undefined) return "no cluster could be asked";
  if (!cluster.maySend) return NO_AUTHOR;
  if (refused) return "another owner has it";
  const manifest = sentManifest(resource);
  if (holds(manifest, NOT_KNOWN)) return "it has an output that is known only after the update";
  if (holds(manifest, MASKED)) return "it holds a secret, which previews do not read";
  if (effect === "replace") return "it takes the place of an object of its name, which is deleted first";
  if (inputs.existing && live === undefined) return "it does not exist any more";
  return effect === "wait" ? "an object of its name is being deleted" : undefined;
}

async function check(
  resource: PlannedResource,
  cluster: ClusterView,
  signal: AbortSignal,
  made: Made,
): Promise<Verdict> {
  const { inputs, live, shown } = resource;
  const manifest = sentManifest(resource);
  if (inputs === undefined || manifest === undefined) return { type: "valid" };
  try {
    const applied = await cluster.dryRun({ ...inputs, manifest }, live, signal);
    // What the API server makes of a manifest, and what others had changed, a state does not know.
    if (live !== undefined && !shown.hidden) shown.fields = appliedFields(live, applied);
    return { type: "valid" };
  } catch (error) {
    if (signal.aborted) return { type: "unknown", why: "the dry run took too long" };
    if (error instanceof ApiError && error.status === 404 && isTypeMissing(error)) {
      if (made.types.has(typeName(inputs.manifest))) {
        return { type: "unknown", why: "the definition of its type is made by the same change" };
      }
      return { type: "invalid", message: error.message };
    }
    return verdictOf(error);
  }
}

/** What is sent of a resource: of a Secret, its values as well, which the report shows as `[secret]`. */
function sentManifest({ inputs, change }: PlannedResource): Manifest | undefined {
  if (inputs === undefined || !isSecret(inputs.manifest)) return inputs?.manifest;
  const { data, stringData } = (change.secretInputs?.().manifest ?? {}) as Partial<Manifest>;
  return { ...inputs.manifest, ...(data !== undefined && { data }), ...(stringData !== undefined && { stringData }) };
}

function isTypeMissing({ reason, message }: ApiError): boolean {
  return reason === "UnknownKind" || MESSAGES.notServed.test(message);
}

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
async function checkQuotas(all: readonly Planned[], cluster: ClusterView, signal: AbortSignal): Promise<void> {
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
