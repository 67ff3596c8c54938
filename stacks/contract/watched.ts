import type { KubernetesClient, LiveObject } from "../../providers/kubernetes/client";
import type { AnyKind } from "./kind";

/** What a kind watches for the object of this key, read from the API server; the operator has it in its caches. */
export async function watchedObjects(client: KubernetesClient, kind: AnyKind, key: string): Promise<LiveObject[]> {
  const lists = await Promise.all(
    (kind.capabilities.watches ?? []).map(async (watch) => {
      const { items } = await client.list(watch, { labelSelector: await watch.selectorOf(key) });
      const keys = await Promise.all(items.map((object) => watch.keysOf(object)));
      return items.filter((_, index) => keys[index]?.includes(key));
    }),
  );
  return lists.flat();
}
