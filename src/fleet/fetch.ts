import { errorMessageOf } from "../../providers/errors";
import type { KubernetesClient, LiveObject, Manifest } from "../../providers/kubernetes/client";
import { clusterOf } from "../../providers/kubernetes/cluster";
import { isSecret } from "../../providers/kubernetes/object-types";
import { OWNER_UID_LABEL } from "../../providers/kubernetes/ownership";
import { type AnyKind, kindName, kindType } from "../../stacks/contract/kind";
import { objectId } from "../../stacks/contract/object";
import { referencesOf } from "../../stacks/contract/references";
import { FLEET_FORMAT, type Fleet, type FleetKind } from "./artefact";
import { liveObjects } from "./live";

/**
 * Reads all objects of kinds, and what their programs may read besides, with the rights of the client. What cannot be read is
 * unknown to who runs the programs; the values of Secrets are left out.
 */
export async function fetchFleet(
  client: KubernetesClient,
  kinds: readonly AnyKind[],
  namespace: string | undefined,
): Promise<Fleet> {
  const reader = {
    look: (manifest: Manifest) => client.find(manifest),
    list: async (kind: AnyKind, where: string | undefined) =>
      (await client.list(kindType(kind), { namespace: kind.scope === "Namespaced" ? where : undefined })).items,
  };
  const cluster = await clusterOf(client).catch(() => undefined); // then programs are not told, as in a preview
  const at = new Date().toISOString();
  const fleet: Fleet = { format: FLEET_FORMAT, at, kinds: [], references: [], notes: [], unchecked: [] };
  const referenced = new Map<string, Manifest>();
  for (const kind of kinds) {
    const { objects, alternatives, stored, notes, unchecked } = await liveObjects(reader, kind, namespace);
    fleet.notes.push(...notes);
    fleet.unchecked.push(...unchecked);
    const besides = await readBesides(client, kind, objects, fleet.unchecked);
    const found = { objects: objects.map(portable), alternatives: alternatives.map(portable), stored };
    fleet.kinds.push({ kind: kindName(kind), ...found, ...besides });
    for (const [, target] of (await Promise.all(objects.map((object) => referencesOf(kind, object)))).flat()) {
      referenced.set(objectId(target), target as Manifest);
    }
  }
  if (fleet.unchecked.length > 0 && fleet.kinds.every(({ stored }) => stored.length === 0)) {
    throw new Error(`nothing could be fetched: ${fleet.unchecked.join("; ")}`);
  }
  for (const [id, target] of referenced) {
    const lookup = await client.find(target);
    fleet.references.push({
      id,
      ...(lookup.outcome === "found" && { object: portable(lookup.object) }),
      ...(lookup.outcome === "unknown" && { unknown: errorMessageOf(lookup.error) }),
    });
  }
  return { ...fleet, ...(cluster && { cluster }) };
}

/** Lists what programs are given of their own and of others' objects, once for all objects. */
async function readBesides(
  client: KubernetesClient,
  { capabilities: { liveState, watches = [] } }: AnyKind,
  objects: readonly LiveObject[],
  unchecked: string[],
): Promise<Pick<FleetKind, "owned" | "watched">> {
  const uids = new Set(objects.map(({ metadata }) => metadata.uid));
  const besides: Pick<FleetKind, "owned" | "watched"> = { owned: { types: [], objects: [] }, watched: [] };
  for (const { apiVersion, kind } of liveState?.reads ?? []) {
    try {
      const { items } = await client.list({ apiVersion, kind }, { labelSelector: OWNER_UID_LABEL });
      besides.owned.types.push({ apiVersion, kind });
      const owned = items.filter(({ metadata }) => uids.has(metadata.labels?.[OWNER_UID_LABEL] ?? ""));
      besides.owned.objects.push(...owned.map(portable));
    } catch (error) {
      unchecked.push(`${kind} of ${apiVersion} could not be listed: ${errorMessageOf(error)}`);
    }
  }
  for (const { apiVersion, kind, labelSelector: selector } of watches) {
    try {
      const { items } = await client.list({ apiVersion, kind }, { labelSelector: selector });
      besides.watched.push({ apiVersion, kind, selector, objects: items.map(portable) });
    } catch (error) {
      unchecked.push(`${kind} of ${apiVersion} could not be listed: ${errorMessageOf(error)}`);
    }
  }
  return besides;
}

/** An object without the records of its writes; of a Secret, that it is there and which keys it has. */
function portable(object: LiveObject): LiveObject {
  const { managedFields: _, ...metadata } = object.metadata;
  if (!isSecret(object)) return { ...object, metadata };
  // An annotation of kubectl's may hold all values once more.
  const { name, namespace, uid, resourceVersion, labels } = metadata;
  const keys = Object.keys((object.data as object | undefined) ?? {});
  return {
    apiVersion: object.apiVersion,
    kind: object.kind,
    metadata: { name, uid, resourceVersion, ...(namespace && { namespace }), ...(labels && { labels }) },
    data: Object.fromEntries(keys.map((key) => [key, ""])),
  };
}
