import type { KubernetesClient, LiveObject } from "../../providers/kubernetes/client";
import { OWNER_ANNOTATION, OWNER_UID_LABEL, ownerUidOf } from "../../providers/kubernetes/ownership";
import { type AnyKind, ownerDescription } from "../../stacks/contract/kind";
import { observedObjects } from "../../stacks/contract/observed";

/** What a program depends on besides its object. */
export interface ProgramInputs {
  /** Of the types in {@link AnyKind.counts}. */
  owned: LiveObject[];
  observed: LiveObject[];
}

/**
 * Asks the API server what an object's program has to know: what it does not see it does not register, and what is not
 * registered any more is deleted. Kinds that depend on nothing in the cluster cost no request.
 *
 * @param cached what the caches show of what the object owns; those that it has from a predecessor carry another UID
 */
export async function readProgramInputs(
  client: KubernetesClient,
  kind: AnyKind,
  key: string,
  { metadata: { uid, namespace } }: LiveObject,
  cached: readonly LiveObject[],
): Promise<ProgramInputs> {
  const description = ownerDescription(kind, key);
  const owned = (kind.counts ?? []).map(async (counted) => {
    const type = await client.resourceType(counted.apiVersion, counted.kind);
    const inherited = cached
      .filter((object) => object.apiVersion === counted.apiVersion && object.kind === counted.kind)
      .filter((object) => ownerUidOf(object) !== uid)
      .map(({ metadata }) => client.get(type, metadata.name, metadata.namespace));
    const labelSelector = `${OWNER_UID_LABEL}=${uid}`;
    const { items } = await client.list(type, { labelSelector, ...(namespace !== undefined && { namespace }) });
    const others = (await Promise.all(inherited)).filter(
      (object) => object?.metadata.annotations?.[OWNER_ANNOTATION] === description && ownerUidOf(object) !== uid,
    );
    return [...items, ...others.filter((object) => object !== undefined)];
  });
  const [lists, observed] = await Promise.all([Promise.all(owned), observedObjects(client, kind, key)]);
  return { owned: lists.flat(), observed };
}
