import pLimit from "p-limit";
import { RetryableError } from "../../providers/errors";
import { type KubernetesClient, known, type LiveObject, type ObjectType } from "../../providers/kubernetes/client";
import { lookUp } from "../../providers/kubernetes/connection";
import { OWNER_ANNOTATION, OWNER_UID_LABEL, ownerUidOf } from "../../providers/kubernetes/ownership";
import { ownerDescription } from "../../stacks/contract/kind";
import { objectId, objectKey, parseObjectId } from "../../stacks/contract/object";
import { watchedFor, watchedObjects, watchesOf } from "../../stacks/contract/watched";
import type { View } from "../plan/plan";
import { deletedWith } from "../plan/untracked";
import type { Step } from "./context";
import { ownedOf, recordedIds } from "./kind-cache";

/** Of a reconcile, what the world around its object is seen with. */
export type Viewed = Step<"item" | "object" | "state", "kind" | "cache" | "client" | "cluster">;

/**
 * The operator's view: caches where they are good enough, and the API server where not. What that cannot tell throws, and the reconcile
 * is tried again: what a program does not see it does not register, and what is not registered any more is deleted. Kinds that depend
 * on nothing in the cluster cost no request.
 */
export function viewOf(viewed: Viewed): View {
  const { context, item } = viewed;
  const { cache, client, cluster, kind } = context;
  return {
    look: (manifest, snapshot) => lookUp(client, manifest, snapshot),
    cluster: async () => cluster,
    owned: async () => {
      const reads = kind.capabilities.liveState?.reads ?? [];
      return (await Promise.all(reads.map((type) => readOwned(viewed, type)))).flat();
    },
    watched: () => readWatched(viewed),
    async marked() {
      const isUnserved = (type: ObjectType) => cache.unserved(objectId({ ...type, metadata: {} })) !== undefined;
      return [...ownedOf(viewed), ...(await listOwned(viewed, kind.owns.filter(isUnserved)))];
    },
    deletedWith: async () => deletedWith(kind, item.key, cache.watched(item.key)),
  };
}

/** What the object has of a type. What it has from a predecessor carries another UID; only the caches lead to it. */
async function readOwned(viewed: Viewed, type: ObjectType): Promise<LiveObject[]> {
  const { client, kind } = viewed.context;
  const { uid, namespace } = viewed.object.metadata;
  const description = ownerDescription(kind, viewed.item.key);
  const isOfType = (object: ObjectType) => object.apiVersion === type.apiVersion && object.kind === type.kind;
  const isInherited = (object: LiveObject) => ownerUidOf(object) !== uid;
  // A list is of the object's own namespace.
  const isElsewhere = ({ metadata }: LiveObject) =>
    kind.scope === "Namespaced" && metadata.namespace !== undefined && metadata.namespace !== namespace;
  const cached = ownedOf(viewed).filter((object) => isOfType(object) && isInherited(object));
  const [{ items }, ...found] = await Promise.all([
    client.list(type, { labelSelector: `${OWNER_UID_LABEL}=${uid}`, namespace }),
    ...cached.map((object) => known(client.find(object))),
  ]);
  const inherited = found
    .filter((object) => object !== undefined)
    .filter((object) => object.metadata.annotations?.[OWNER_ANNOTATION] === description && isInherited(object));
  const recorded = [...recordedIds(viewed.object)].filter((id) => isOfType(parseObjectId(id)));
  const unlisted = (await findUnlisted(client, [...items, ...inherited], recorded)).filter((one) => !isInherited(one));
  refuseStale(unlisted.filter((object) => !isElsewhere(object)));
  return [...items, ...inherited, ...unlisted];
}

/** What the kind watches for the object; what the caches or the status know of it is in it. */
async function readWatched({ context, item, object }: Viewed): Promise<LiveObject[]> {
  const { cache, client, kind } = context;
  const listed = await watchedObjects(client, kind, item.key);
  const { watches = [] } = kind.capabilities;
  const recorded = [...recordedIds(object)].filter((id) => watchesOf(watches, parseObjectId(id)).length > 0);
  const expected = new Set([...recorded, ...cache.watched(item.key).map(objectId)]);
  const unlisted = await findUnlisted(client, listed, [...expected]);
  refuseStale(await watchedFor(watches, item.key, unlisted));
  return listed;
}

/** The live objects of some types, in any version that the API server serves, with the mark of the object. */
export async function listOwned(
  { context, object }: Step<"object", "client">,
  types: readonly ObjectType[],
): Promise<LiveObject[]> {
  const { uid, namespace } = object.metadata;
  // Only in its namespace: users can set that label on their own objects.
  const selection = { labelSelector: `${OWNER_UID_LABEL}=${uid}`, namespace };
  const lists = await Promise.all(types.map((type) => context.client.listInAnyVersion(type, selection)));
  return lists.flat();
}

/** Requests for single objects that a list lacks, at the same time. */
const REQUESTS_AT_ONCE = 16;

/** Of these ids, the objects that exist, though a list of their type lacks them. */
async function findUnlisted(
  client: Pick<KubernetesClient, "find">,
  listed: readonly LiveObject[],
  ids: readonly string[],
): Promise<LiveObject[]> {
  const seen = new Set(listed.map(objectId));
  const limit = pLimit(REQUESTS_AT_ONCE);
  const unlisted = ids.filter((id) => !seen.has(id)).map(parseObjectId);
  const found = await Promise.all(
    unlisted.map(({ apiVersion, kind, ...metadata }) =>
      limit(() => known(client.find({ apiVersion, kind, metadata }))),
    ),
  );
  return found.filter((object) => object !== undefined);
}

/** @throws RetryableError `StaleList` when a list lacked an object that exists: what a program does not see it deletes */
function refuseStale(unlisted: readonly LiveObject[]): void {
  const [object] = unlisted;
  if (object === undefined) return;
  const name = `${object.kind} ${objectKey(object.metadata)}`;
  const message = `the API server's list of ${object.kind} objects lacks ${name}, which exists: the list is outdated, retrying`;
  throw new RetryableError("StaleList", message);
}
