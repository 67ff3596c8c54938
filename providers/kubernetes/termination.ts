import type { ObjectReference } from "../errors";
import type { KubernetesClient, LiveObject } from "./client";

/** The conditions of a namespace that say what keeps it, such as `NamespaceContentRemaining`. */
const NAMESPACE_REMAINS = /^Namespace\w+(Failure|Remaining)$/;
const MAX_PODS_NAMED = 3;

export function referenceTo({ apiVersion, kind, metadata: { name, namespace, uid } }: LiveObject): ObjectReference {
  return { apiVersion, kind, metadata: { name, ...(namespace !== undefined && { namespace }), uid } };
}

/** What keeps an object that is being deleted, in words: {@link whatHolds}, and the Pods of a Deployment with finalizers. */
export async function describeTermination(client: KubernetesClient, live: LiveObject): Promise<string> {
  return termination(live, live.kind === "Deployment" ? await podsHeld(client, live) : []);
}

/** @param causes besides {@link whatHolds} */
export function termination(live: LiveObject, causes: readonly string[] = []): string {
  const all = [...whatHolds(live), ...causes];
  return `${live.kind} ${live.metadata.name} is being deleted${all.length > 0 ? ` and waits for: ${all.join("; ")}` : ""}`;
}

/** What keeps an object that is being deleted: its finalizers, and what a namespace's conditions say remains. */
function whatHolds({ kind, metadata, status }: LiveObject): string[] {
  const { conditions = [] } = (status ?? {}) as { conditions?: { type: string; status: string; message?: string }[] };
  const remains = conditions.filter(({ type, status }) => status === "True" && NAMESPACE_REMAINS.test(type));
  return [
    ...(metadata.finalizers?.length ? [`its finalizers ${metadata.finalizers.join(", ")}`] : []),
    ...(kind === "Namespace" ? remains.flatMap(({ message }) => message ?? []) : []),
  ];
}

async function podsHeld(client: KubernetesClient, { metadata, spec }: LiveObject): Promise<string[]> {
  const { matchLabels = {} } = (spec as { selector?: { matchLabels?: Record<string, string> } }).selector ?? {};
  const labelSelector = Object.entries(matchLabels)
    .map(([label, value]) => `${label}=${value}`)
    .join(",");
  if (labelSelector === "") return [];
  // An operator that may not list Pods names none.
  const { items } = await client
    .list({ apiVersion: "v1", kind: "Pod" }, { namespace: metadata.namespace, labelSelector })
    .catch(() => ({ items: [] }));
  const held = items.filter(({ metadata }) => metadata.deletionTimestamp && metadata.finalizers?.length);
  const named = held
    .slice(0, MAX_PODS_NAMED)
    .map(({ metadata }) => `the finalizers ${metadata.finalizers?.join(", ")} of Pod ${metadata.name}`);
  return held.length > named.length ? [...named, `those of ${held.length - named.length} more Pods`] : named;
}
