import { setTimeout as delay } from "node:timers/promises";
import { isApiError, type KubernetesClient, type ObjectType } from "../../providers/kubernetes/client";

/** How often the API server is asked whether it serves a type by now. */
const INTERVAL_MS = 10_000;

/** The types that the API server does not serve. @param codes status codes that mean "not served", besides 404 */
export async function unservedTypes(
  client: Pick<KubernetesClient, "resourceType">,
  types: readonly ObjectType[],
  ...codes: readonly number[]
): Promise<ObjectType[]> {
  const unserved: ObjectType[] = [];
  for (const type of types) {
    try {
      await client.resourceType(type.apiVersion, type.kind);
    } catch (error) {
      if (!isApiError(error, 404, ...codes)) throw error;
      unserved.push(type);
    }
  }
  return unserved;
}

/** Calls `served` for each holder of types that the API server did not serve and now does, until `signal` is aborted. */
export async function pollUnserved<T>(
  client: Pick<KubernetesClient, "resourceType">,
  holders: () => Iterable<readonly [T, readonly ObjectType[]]>,
  served: (holder: T) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    await delay(INTERVAL_MS, undefined, { signal }).catch(() => {});
    for (const [holder, types] of [...holders()]) {
      if (signal.aborted || types.length === 0) continue;
      try {
        if ((await unservedTypes(client, types)).length < types.length) await served(holder);
      } catch {
        // The API server is away, or the type again: it is asked the next time.
      }
    }
  }
}
