import type { KubernetesClient, LiveObject } from "../../providers/kubernetes/client";
import { OWNER_ANNOTATION, OWNER_UID_LABEL, ownerUidOf } from "../../providers/kubernetes/ownership";
import { type AnyKind, ownerDescription } from "../../stacks/contract/kind";
import { watchedObjects } from "../../stacks/contract/watched";

/** What a program depends on besides its object. */
export interface ProgramInputs {
  /** Of the types in {@link LiveState.reads}. */
  owned: LiveObject[];
  watched: LiveObject[];
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
  const owned = (kind.capabilities.liveState?.reads ?? []).map(async (read) => {
    const inherited = cached
      .filter((object) => object.apiVersion === read.apiVersion && object.kind === read.kind)
      .filter((object) => ownerUidOf(object) !== uid)
      .map((object) => client.find(object));
    const labelSelector = `${OWNER_UID_LABEL}=${uid}`;
    const [{ items }, ...found] = await Promise.all([client.list(read, { labelSelector, namespace }), ...inherited]);
    const others = found.filter(
      (object) => object?.metadata.annotations?.[OWNER_ANNOTATION] === description && ownerUidOf(object) !== uid,
    );
    return [...items, ...others.filter((object) => object !== undefined)];
  });
  const [lists, watched] = await Promise.all([Promise.all(owned), watchedObjects(client, kind, key)]);
  return { owned: lists.flat(), watched };
}
