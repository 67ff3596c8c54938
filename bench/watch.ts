import type { KubernetesClient, LiveObject, ResourceType } from "../providers/kubernetes/client";

const TIMEOUT_SECONDS = 60;

/** Waits for an object of a namespace; what comes after the promise has resolved is seen. */
export async function watchFor(
  client: KubernetesClient,
  type: ResourceType,
  namespace: string,
  isIt: (object: LiveObject) => boolean,
): Promise<{ seen: Promise<void> }> {
  const { resourceVersion } = await client.list(type, { namespace });
  return { seen: untilSeen(client, type, namespace, resourceVersion, isIt) };
}

async function untilSeen(
  client: KubernetesClient,
  type: ResourceType,
  namespace: string,
  resourceVersion: string,
  isIt: (object: LiveObject) => boolean,
): Promise<void> {
  const stop = new AbortController();
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of await client.watch(type, {
    namespace,
    resourceVersion,
    timeoutSeconds: TIMEOUT_SECONDS,
    signal: stop.signal,
  })) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    if (lines.some((line) => isIt((JSON.parse(line) as { object: LiveObject }).object))) {
      stop.abort();
      return;
    }
  }
  throw new Error(`what was waited for among the ${type.plural} did not come within ${TIMEOUT_SECONDS} s`);
}
