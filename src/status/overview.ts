import { errorMessageOf } from "../../providers/errors";
import { isApiError, type KubernetesClient, type LiveObject } from "../../providers/kubernetes/client";
import { type AnyKind, kindName, kindType } from "../../stacks/contract/kind";
import { objectKey } from "../../stacks/contract/object";
import { REPORTING_CONTROLLER } from "../controller/event-recorder";
import { kubernetesLeases } from "../sharding/lease-store";
import { SHARD_PREFIX } from "../sharding/step";
import { countObjects } from "./object-counts";
import { type MetricsLocation, readOperatorStatus } from "./operator-status";

/** The state of an operator, in one screen. A part that cannot be read is an error in its place. */
export type Overview = Awaited<ReturnType<typeof readOverview>>;

const TIMEOUT_MS = 10_000;
const RECENT_EVENTS = 10;

export async function readOverview(
  client: KubernetesClient,
  kinds: readonly AnyKind[],
  metrics: MetricsLocation,
  namespace: string,
) {
  const [counts, operator, shards, events] = await Promise.all([
    Promise.all(kinds.map((kind) => readKind(client, kind))),
    readOperatorStatus(metrics).catch(asError),
    readShards(client, namespace).catch(asError),
    readEvents(client).catch(asError),
  ]);
  return { kinds: counts, operator, shards, events };
}

function asError(error: unknown): { error: string } {
  return { error: errorMessageOf(error) };
}

async function readKind(client: KubernetesClient, kind: AnyKind) {
  try {
    const { items } = await client.list(kindType(kind));
    return countObjects(kind, items);
  } catch (error) {
    // One that is not installed is no fault: an operator may serve fewer kinds.
    const isMissing = isApiError(error, 404);
    return { kind: kindName(kind), error: isMissing ? "not installed" : errorMessageOf(error) };
  }
}

/** The holder is `null` while no replica holds a shard. */
async function readShards(client: KubernetesClient, namespace: string) {
  const leases = await kubernetesLeases(client, namespace, TIMEOUT_MS).list();
  return leases
    .filter(({ name }) => name.startsWith(SHARD_PREFIX))
    .map(({ name, holder }) => ({ lease: name, holder: holder ?? null }))
    .sort((a, b) => (a.lease < b.lease ? -1 : 1));
}

/** Of `v1`, where Events can be selected by the reporting controller. */
interface CoreEvent extends LiveObject {
  eventTime?: string;
  series?: { count: number; lastObservedTime: string };
  type?: string;
  reason?: string;
  message?: string;
  involvedObject?: { kind?: string; namespace?: string; name?: string };
}

async function readEvents(client: KubernetesClient) {
  const { items } = await client.json<{ items: CoreEvent[] }>("GET", "/api/v1/events", {
    query: { fieldSelector: `reportingComponent=${REPORTING_CONTROLLER}` },
  });
  return items
    .map(recentEvent)
    .sort((a, b) => (a.time < b.time ? 1 : -1))
    .slice(0, RECENT_EVENTS);
}

/** What the operator last said of an object. */
function recentEvent({ metadata, involvedObject, series, ...event }: CoreEvent) {
  const { kind = "", namespace, name = "" } = involvedObject ?? {};
  return {
    time: series?.lastObservedTime ?? event.eventTime ?? metadata.creationTimestamp ?? "",
    type: event.type ?? "",
    object: `${kind} ${objectKey({ name, ...(namespace !== undefined && { namespace }) })}`,
    reason: event.reason ?? "",
    note: event.message ?? "",
    count: series?.count ?? 1,
  };
}
