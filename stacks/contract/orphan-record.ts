import type { KubernetesClient, LiveObject } from "../../providers/kubernetes/client";
import { ORPHANED_ANNOTATION } from "./annotations";

/**
 * Notes on an object that the deletion which is under way leaves its resources. Admission does so where it sees the deletion, so
 * that an operator that is away learns of it; a reconcile where no admission is served, or it was not quick enough.
 */
export function recordOrphaned(client: Pick<KubernetesClient, "mergePatch">, object: LiveObject): Promise<LiveObject> {
  const { name, namespace, uid, deletionTimestamp } = object.metadata;
  const annotations = { [ORPHANED_ANNOTATION]: deletionTimestamp };
  return client.mergePatch(object, name, namespace, { metadata: { uid, annotations } });
}
