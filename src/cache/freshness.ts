import pLimit from "p-limit";
import type { KubernetesClient, LiveObject, ObjectType } from "../../providers/kubernetes/client";
import { objectKey } from "../../stacks/contract/object";

/** A list costs less than requests for this part of its objects: 0.1 ms of CPU time for each in it, against 2. */
const WORTH_A_LIST = 1 / 20;
const REQUESTS_AT_ONCE = 16;

/**
 * Whether the spec that a cache shows is the object's: an update to an earlier one deletes what came with a later one, and
 * a destroy must not be of a successor. Caches are behind for long where a watch has gone silent, and another replica has
 * worked on the object since.
 */
export function isFresh(cached: LiveObject, live: LiveObject | undefined): boolean {
  const [before, now] = [cached.metadata, live?.metadata];
  if (now?.uid !== before.uid) return false;
  if (before.deletionTimestamp !== undefined) return now.deletionTimestamp !== undefined;
  return now.generation === before.generation && now.deletionTimestamp === undefined;
}

/**
 * Asks the API server which of these objects {@link isFresh}, by their keys: for all of a namespace at once where they
 * are a good part of what is there.
 *
 * @param total how many objects a namespace has, about
 */
export async function findFresh(
  client: KubernetesClient,
  type: ObjectType,
  cached: readonly LiveObject[],
  total: (namespace: string) => number,
): Promise<Set<string>> {
  const byKey = new Map(cached.map((object) => [objectKey(object.metadata), object]));
  const byNamespace = new Map<string, LiveObject[]>();
  for (const object of cached) {
    const { namespace = "" } = object.metadata;
    const others = byNamespace.get(namespace);
    if (others === undefined) byNamespace.set(namespace, [object]);
    else others.push(object);
  }
  const keys = new Set<string>();
  const look = (live: LiveObject) => {
    const key = objectKey(live.metadata);
    const object = byKey.get(key);
    if (object !== undefined && isFresh(object, live)) keys.add(key);
  };
  const limiter = pLimit(REQUESTS_AT_ONCE);
  const list = async (namespace: string) => {
    for await (const { items } of client.pages(type, { namespace, metadataOnly: true })) items.forEach(look);
  };
  const read = async ({ metadata: { name, namespace } }: LiveObject) => {
    const live = await client.get(type, name, namespace);
    if (live !== undefined) look(live);
  };
  const requests = [...byNamespace].flatMap(([namespace, objects]) =>
    objects.length > 1 && objects.length >= total(namespace) * WORTH_A_LIST
      ? [() => list(namespace)]
      : objects.map((object) => () => read(object)),
  );
  await Promise.all(requests.map((request) => limiter(request)));
  return keys;
}
