import { invalidProgram } from "../errors";
import { type KubernetesClient, known } from "./client";
import type { Owner } from "./ownership";
import type { Manifest } from "./types";

/*
 * Kubernetes looks for a namespaced owner in the namespace of the dependent alone. Where it is elsewhere, the garbage collector takes
 * it for gone, and deletes the dependent again and again.
 */

/** Refuses a reference to the owner from another namespace. @throws TerminalError `InvalidProgram` */
export function refuseOwnerElsewhere(manifest: Manifest, owner: Owner): void {
  const { ownerReferences = [], namespace } = manifest.metadata;
  if (!Array.isArray(ownerReferences) || !ownerReferences.some(({ uid }) => uid === owner.uid)) return;
  // `Notice.example.com/namespace/name`; a description of two parts is of an owner without a namespace.
  const [, ownerNamespace, ownerName] = owner.description.split("/");
  if (ownerName !== undefined && ownerNamespace !== namespace) throw elsewhere(manifest, owner.description);
}

/** Refuses references to other owners that the object's namespace does not have. @throws TerminalError `InvalidProgram` */
export async function refuseOwnersElsewhere(
  client: Pick<KubernetesClient, "get" | "resourceType">,
  manifest: Manifest,
  owner: Owner,
): Promise<void> {
  for (const { apiVersion, kind, name, uid } of manifest.metadata.ownerReferences ?? []) {
    if (uid === owner.uid || !(await client.resourceType(apiVersion, kind)).namespaced) continue;
    const { namespace } = manifest.metadata;
    const found = namespace === undefined ? undefined : await known(client.get({ apiVersion, kind }, name, namespace));
    if (found?.metadata.uid !== uid) throw elsewhere(manifest, `${kind} ${name}`);
  }
}

function elsewhere({ kind, metadata }: Manifest, owner: string): Error {
  const place = metadata.namespace === undefined ? "which has no namespace" : `in the namespace ${metadata.namespace}`;
  return invalidProgram(
    `${kind} ${metadata.name}, ${place}, has an owner reference to ${owner}, which is not there: remove the reference; ` +
      "the stack deletes what it made without one",
  );
}
