import type { KubernetesClient, LiveObject, ObjectType } from "../../providers/kubernetes/client";
import type { AnyKind } from "./kind";

/** What a kind watches for the object of this key, read from the API server; the operator has it in its caches. */
export async function watchedObjects(client: KubernetesClient, kind: AnyKind, key: string): Promise<LiveObject[]> {
  const lists = await Promise.all(
    (kind.capabilities.watches ?? []).map(async (watch) => {
      const { items } = await client.list(watch, { labelSelector: await watch.selectorOf(key) });
      return watchedFor([watch], key, items);
    }),
  );
  return lists.flat();
}

type Watch = NonNullable<AnyKind["capabilities"]["watches"]>[number];

export function watchesOf(watches: readonly Watch[], type: ObjectType): Watch[] {
  return watches.filter(({ apiVersion, kind }) => apiVersion === type.apiVersion && kind === type.kind);
}

/** Of live objects, those that these watches see for the object of this key. */
export async function watchedFor(
  watches: readonly Watch[],
  key: string,
  objects: readonly LiveObject[],
): Promise<LiveObject[]> {
  const keysOf = async (object: LiveObject) =>
    (await Promise.all(watchesOf(watches, object).map((watch) => watch.keysOf(object)))).flat();
  const keys = await Promise.all(objects.map(keysOf));
  return objects.filter((_, index) => keys[index]?.includes(key));
}
