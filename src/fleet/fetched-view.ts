import type { LiveObject, ObjectType } from "../../providers/kubernetes/client";
import { OWNER_UID_LABEL } from "../../providers/kubernetes/ownership";
import type { AnyKind } from "../../stacks/contract/kind";
import { objectId, objectKey } from "../../stacks/contract/object";
import type { View } from "../plan/plan";
import type { Fleet, FleetKind } from "./artefact";

const NOT_FETCHED = "it is not in the file: the program that fetched does not read it";

/** What was fetched, as the world around each object of a kind. What was not fetched is unknown. */
export async function fetchedViews(
  { references, cluster }: Fleet,
  { owned, watched }: FleetKind,
  kind: AnyKind,
): Promise<(object: LiveObject) => View> {
  const { liveState, watches = [] } = kind.capabilities;
  const targets = new Map(references.map((reference) => [reference.id, reference]));
  const ownedBy = Map.groupBy(owned.objects as LiveObject[], ({ metadata }) => metadata.labels?.[OWNER_UID_LABEL]);
  const unread = liveState?.reads.find((type) => !owned.types.some((one) => isOf(one, type)));
  const lists = watches.map((watch) => ({
    watch,
    list: watched.find((one) => isOf(one, watch) && one.selector === watch.labelSelector),
  }));
  const watchedFor = new Map<string, LiveObject[]>();
  for (const { watch, list } of lists) {
    for (const object of (list?.objects ?? []) as LiveObject[]) {
      for (const key of await watch.keysOf(object)) watchedFor.set(key, [...(watchedFor.get(key) ?? []), object]);
    }
  }
  return (object) => ({
    async look(manifest) {
      const found = targets.get(objectId(manifest));
      if (found === undefined) return { outcome: "unknown", error: new Error(`${objectId(manifest)}: ${NOT_FETCHED}`) };
      if (found.unknown !== undefined) return { outcome: "unknown", error: new Error(found.unknown) };
      return found.object ? { outcome: "found", object: found.object as LiveObject } : { outcome: "absent" };
    },
    cluster: async () => cluster && { name: cluster.uid, ...cluster },
    async owned() {
      if (unread !== undefined) throw notFetched(unread);
      const { uid, namespace } = object.metadata;
      // Only in its namespace: users can set that label on their own objects.
      const all = ownedBy.get(uid) ?? [];
      return all.filter(({ metadata }) => namespace === undefined || metadata.namespace === namespace);
    },
    async watched() {
      const missing = lists.find(({ list }) => list === undefined);
      if (missing !== undefined) throw notFetched(missing.watch);
      return watchedFor.get(objectKey(object.metadata)) ?? [];
    },
    marked: async () => [],
    deletedWith: async () => [],
  });
}

function isOf(one: ObjectType, other: ObjectType): boolean {
  return one.apiVersion === other.apiVersion && one.kind === other.kind;
}

function notFetched({ apiVersion, kind }: ObjectType): Error {
  return new Error(`${kind} of ${apiVersion}: ${NOT_FETCHED}`);
}
