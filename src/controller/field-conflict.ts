import { isDeepStrictEqual } from "node:util";
import type { LiveObject, ManagedFieldsEntry, Manifest } from "../../providers/kubernetes/client";
import { isOwnEntry } from "../../providers/kubernetes/ownership";
import { objectId } from "../../stacks/contract/object";
import type { KindContext, Reconcile } from "./context";

/** What another controller undoes again and again, as it was found when a repair began. */
export interface FieldConflict {
  /** With all managed fields. */
  edited: LiveObject[];
  /** The ids of what was deleted. */
  deleted: string[];
}

/**
 * Counts a repair.
 *
 * @returns what is in conflict, when it is one repair too many. What is missing does not count for programs that depend
 *   on what is alive: there, things come and go.
 */
export async function countRepair({ context, state, facts }: Reconcile): Promise<FieldConflict | undefined> {
  const { edited, missing } = facts.drift;
  const deleted = context.kind.capabilities.liveState === undefined ? missing : [];
  if (edited.length + deleted.length === 0 || !state.repairs.count(performance.now())) return undefined;
  return { edited: await readLive(context, edited), deleted };
}

async function readLive({ client, cache }: KindContext, ids: readonly string[]): Promise<LiveObject[]> {
  const objects = await Promise.all(
    ids.map(async (id) => {
      const seen = cache.view(id)?.object;
      return seen && client.find(seen);
    }),
  );
  return objects.filter((object) => object !== undefined);
}

/** Who undoes what, in words. @param applied what Kindstack applies; `edited` are the live objects among it */
export function describeFieldConflict({ edited, deleted }: FieldConflict, applied: readonly Manifest[]): string {
  const manifests = new Map(applied.map((manifest) => [objectId(manifest), manifest]));
  const taken = edited.flatMap((live) => {
    const manifest = manifests.get(objectId(live));
    const fields = manifest === undefined ? [] : foreignFields(live, manifest);
    return fields.map(({ field, manager }) => `${live.kind} ${live.metadata.name}: ${field} is also set by ${manager}`);
  });
  const texts = [...taken, ...deleted.map((id) => `${id} is deleted by another client`)];
  return texts.join("; ") || "another client removes fields after each repair";
}

/** Which fields of a manifest are others' in a drifted object, by the API server's own books. */
function foreignFields(live: LiveObject, manifest: Manifest) {
  const { managedFields = [] } = live.metadata;
  const paths = ({ fieldsV1 = {} }: ManagedFieldsEntry) => fieldPaths(fieldsV1, manifest, "");
  const ours = new Set(managedFields.filter(isOwnEntry).flatMap(paths));
  return managedFields
    .filter((entry) => !isOwnEntry(entry))
    .flatMap((entry) => paths(entry).map((field) => ({ field, manager: entry.manager ?? "an unnamed manager" })))
    .filter(({ field }) => !ours.has(field));
}

/** The leaves of a `fieldsV1` tree that a value has as well: `spec.containers[name="memcached"].image` and the like. */
function fieldPaths(fields: Record<string, unknown>, value: unknown, path: string): string[] {
  if (Object.keys(fields).length === 0) return [path];
  return Object.entries(fields).flatMap(([key, child]) => {
    const part = partAt(value, key);
    return part === undefined
      ? []
      : fieldPaths(child as Record<string, unknown>, part, path + segment(key, path === ""));
  });
}

/** What stands behind a key of a `fieldsV1` tree: `f:` a field, `k:` an item by its keys, `v:` an item by its value. */
function partAt(value: unknown, key: string): unknown {
  const name = key.slice(2);
  if (key.startsWith("f:")) return (value as Record<string, unknown>)[name];
  if (!Array.isArray(value)) return undefined;
  const wanted = JSON.parse(name);
  if (key.startsWith("v:")) return value.find((item) => isDeepStrictEqual(item, wanted));
  // A key that the manifest leaves out is one that the server fills in, such as a port's protocol.
  return value.find((item) => Object.entries(wanted).every(([field, is]) => (item[field] ?? is) === is));
}

function segment(key: string, first: boolean): string {
  if (key.startsWith("f:")) return first ? key.slice(2) : `.${key.slice(2)}`;
  if (!key.startsWith("k:")) return `[${key.slice(2)}]`;
  const keys = Object.entries(JSON.parse(key.slice(2)) as Record<string, unknown>);
  return `[${keys.map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(",")}]`;
}
