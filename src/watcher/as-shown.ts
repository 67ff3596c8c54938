import type { KubernetesClient, LiveObject, ResourceType } from "../../providers/kubernetes/client";
import { objectKey } from "../../stacks/contract/object";
import { Limiter } from "./limiter";

/** A list costs less than requests for this part of its objects: 0.1 ms of CPU time for each in it, against 2. */
const WORTH_A_LIST = 1 / 20;
const REQUESTS_AT_ONCE = 16;

/**
 * Whether the spec that a cache shows is the object's: an update to an earlier one deletes what came with a later one, and
 * a destroy must not be of a successor. Caches are behind for long where a watch has gone silent, and another replica has
 * worked on the object since.
 */
export function isAsShown(shown: LiveObject, live: LiveObject | undefined): boolean {
  const [before, now] = [shown.metadata, live?.metadata];
  if (now?.uid !== before.uid) return false;
  if (before.deletionTimestamp !== undefined) return now.deletionTimestamp !== undefined;
  return now.generation === before.generation && now.deletionTimestamp === undefined;
}

/**
 * Asks the API server which of a namespace's objects {@link isAsShown}, by their keys: for all of them at once where they
 * are a good part of what is there.
 *
 * @param total how many objects the namespace has, about
 */
export async function keysAsShown(
  client: KubernetesClient,
  type: ResourceType,
  shown: readonly LiveObject[],
  total: number,
): Promise<Set<string>> {
  const namespace = shown[0]?.metadata.namespace;
  const byKey = new Map(shown.map((object) => [objectKey(object.metadata), object]));
  const keys = new Set<string>();
  const look = (live: LiveObject) => {
    const key = objectKey(live.metadata);
    const object = byKey.get(key);
    if (object !== undefined && isAsShown(object, live)) keys.add(key);
  };
  if (namespace !== undefined && shown.length > 1 && shown.length >= total * WORTH_A_LIST) {
    for await (const { items } of client.pages(type, { namespace, metadataOnly: true })) items.forEach(look);
    return keys;
  }
  const limiter = new Limiter(REQUESTS_AT_ONCE);
  const read = async ({ metadata: { name } }: LiveObject) => {
    const live = await limiter.run(() => client.get(type, name, namespace));
    if (live !== undefined) look(live);
  };
  await Promise.all(shown.map(read));
  return keys;
}
