import { programDigest } from "../../stacks/contract/digest";
import { type AnyKind, kindName, kindType } from "../../stacks/contract/kind";
import { statesOf, withoutManagedFields } from "../cache/informer";
import { Controller, type ControllerEnvironment } from "./controller";
import type { KindCache } from "./kind-cache";
import { objectItem } from "./object-item";
import { ObjectWriter } from "./object-writer";
import { OWNED_EVENT_DELAY_MS } from "./owner-index";
import { Reconciler } from "./reconcile";
import { Rollout, type RolloutPolicy } from "./rollout";
import { countRuns } from "./run-metrics";

const KEY_INDEX = "key";

/**
 * Makes the controller of a kind, with informers for the kind's objects, for what they own and for what has to do with them.
 *
 * @throws ApiError, with nothing made, when the kind, or a type that it owns or watches, is not installed in the cluster
 */
export async function openController(kind: AnyKind, environment: ControllerEnvironment): Promise<Controller> {
  const { claims, client, cluster, engine, informers, logger, metrics, owners, queue, recorder } = environment;
  const name = kindName(kind);
  const own = kindType(kind);
  for (const { apiVersion, kind: type } of [own, ...kind.owns, ...(kind.capabilities.watches ?? [])]) {
    await client.resourceType(apiVersion, type);
  }
  for (const owned of kind.owns) await owners.watch(owned);
  const watched = await Promise.all(
    (kind.capabilities.watches ?? []).map(({ apiVersion, kind: type, labelSelector, keysOf }) =>
      informers.create(
        { apiVersion, kind: type },
        {
          labelSelector,
          indexers: { [KEY_INDEX]: keysOf },
          transform: withoutManagedFields,
          onChange: (change) => {
            for (const key of new Set(statesOf(change).flatMap(keysOf))) requeue(key, OWNED_EVENT_DELAY_MS);
          },
        },
        `${apiVersion}/${type}?${labelSelector}`,
      ),
    ),
  );
  const objects = await informers.create(
    own,
    { transform: withoutManagedFields, onChange: (change) => controller.objectChanged(change) },
    name,
  );
  const cache: KindCache = {
    object: (key) => objects.get(key),
    tombstone: (key) => controller.tombstone(key),
    owned: (uid) => owners.owned(kind, uid),
    watched: (key) => watched.flatMap((informer) => informer.byIndex(KEY_INDEX, key)),
    view: (id) => owners.view(id),
    describeOwner: (uid) => owners.describe(uid),
  };
  const reconciler = new Reconciler({
    kind,
    program: programDigest(kind),
    cluster,
    client,
    cache,
    engine,
    writer: new ObjectWriter({ kind, client, cache, recorder }),
    claims,
    rollout: environment.rollout && openRollout(environment.rollout),
    metrics: countRuns(kind, metrics),
    logger,
  });
  const controller = new Controller(kind, environment, objects, watched, reconciler);
  return controller;

  function requeue(key: string, ms: number): void {
    const object = objects.get(key);
    if (object !== undefined) queue.addAfter(objectItem(kind, object.metadata), ms);
  }

  function openRollout(policy: RolloutPolicy): Rollout {
    const rollout = new Rollout({
      ...policy,
      total: () => objects.size,
      requeue: (key) => requeue(key, 0),
    });
    metrics.rollout(name, () => rollout.counts);
    return rollout;
  }
}
