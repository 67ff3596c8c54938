import { FIELD_MANAGER, type LiveObject, type ManagedFieldsEntry } from "../../providers/kubernetes/client";

/** More repairs of edited fields in a minute than this are a fight with another controller, not an accident. */
export const MAX_REPAIRS_PER_MINUTE = 6;
const WINDOW_MS = 60_000;
const SLOWEST_MS = 5 * 60_000;
const FIRST_DELAY_MS = 10_000;

/** The repairs that still count. */
export function recentRepairs(repairs: readonly number[], now: number): number[] {
  return repairs.filter((time) => now - time < WINDOW_MS);
}

/** How long to leave a contested field alone: doubled with every repair above the limit. */
export function repairDelay(repairs: number): number {
  if (repairs <= MAX_REPAIRS_PER_MINUTE) return 0;
  return Math.min(SLOWEST_MS, FIRST_DELAY_MS * 2 ** (repairs - MAX_REPAIRS_PER_MINUTE - 1));
}

/** A field that somebody else took, and who that is. */
export interface ContestedField {
  field: string;
  manager: string;
}

/**
 * Which of Kindstack's fields others held before a repair, by the API server's own books.
 *
 * @param before the object as it was found, @param after as the repair left it, both with all managed fields
 */
export function contestedFields(before: LiveObject, after: LiveObject): ContestedField[] {
  const held = new Set(entriesOf(before, isOurs).flatMap(fieldPaths));
  const others = entriesOf(before, (entry) => !isOurs(entry));
  return entriesOf(after, isOurs)
    .flatMap(fieldPaths)
    .filter((field) => !held.has(field))
    .map((field) => ({
      field,
      manager: others.find((entry) => fieldPaths(entry).includes(field))?.manager ?? "somebody who removed it",
    }));
}

function entriesOf(object: LiveObject, wanted: (entry: ManagedFieldsEntry) => boolean): ManagedFieldsEntry[] {
  return object.metadata.managedFields?.filter(wanted) ?? [];
}

function isOurs({ manager, operation, subresource }: ManagedFieldsEntry): boolean {
  return manager === FIELD_MANAGER && operation === "Apply" && !subresource;
}

/** The leaves of a `fieldsV1` tree: `spec.replicas`, `spec.containers[name="memcached"].image`. */
function fieldPaths({ fieldsV1 = {} }: ManagedFieldsEntry): string[] {
  const paths: string[] = [];
  const walk = (node: Record<string, unknown>, path: string) => {
    const children = Object.entries(node).filter(([key]) => key !== ".");
    if (children.length === 0 && path !== "") paths.push(path);
    for (const [key, child] of children) walk(child as Record<string, unknown>, path + segment(key, path === ""));
  };
  walk(fieldsV1, "");
  return paths;
}

function segment(key: string, first: boolean): string {
  if (key.startsWith("f:")) return first ? key.slice(2) : `.${key.slice(2)}`;
  if (!key.startsWith("k:")) return `[${key.slice(2)}]`;
  const keys = Object.entries(JSON.parse(key.slice(2)) as Record<string, unknown>);
  return `[${keys.map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(",")}]`;
}
