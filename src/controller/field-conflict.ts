import { isDeepStrictEqual } from "node:util";
import {
  FIELD_MANAGER,
  type LiveObject,
  type ManagedFieldsEntry,
  type Manifest,
} from "../../providers/kubernetes/client";
import { objectId } from "../../stacks/contract/object";

/** More repairs in a minute than this are a fight with another controller, not an accident. */
export const MAX_REPAIRS_PER_MINUTE = 6;
const WINDOW_MS = 60_000;
const FIRST_DELAY_MS = 10_000;
const SLOWEST_MS = 5 * 60_000;

/**
 * How often one object was put right, and how long that has to wait while somebody undoes each repair: the delay is
 * doubled with every repair of a fight. All times are those of `performance.now()`: a clock that is set must not
 * put off repairs.
 */
export class RepairPace {
  readonly #perMinute: number;
  #repairs: number[] = [];
  #delayMs = 0;

  /** @param perMinute so many are no fight; after one more, the next has to wait */
  constructor(perMinute = MAX_REPAIRS_PER_MINUTE) {
    this.#perMinute = perMinute;
  }

  /** Nothing is put right before this time. */
  get notBefore(): number {
    return (this.#repairs.at(-1) ?? Number.NEGATIVE_INFINITY) + this.#delayMs;
  }

  /** When a fight is over, if nothing has to be put right until then. */
  get settledAt(): number {
    return this.notBefore + WINDOW_MS;
  }

  /** Counts a repair; returns whether it belongs to a fight. */
  count(now: number): boolean {
    if (now >= this.settledAt) this.#delayMs = 0;
    this.#repairs = [...this.#repairs.filter((time) => now - time < WINDOW_MS), now];
    if (this.#delayMs > 0) this.#delayMs = Math.min(SLOWEST_MS, 2 * this.#delayMs);
    else if (this.#repairs.length > this.#perMinute) this.#delayMs = FIRST_DELAY_MS;
    return this.#delayMs > 0;
  }
}

/** What was found of a fight when a repair began. */
export interface Contest {
  /** With all managed fields. */
  edited: LiveObject[];
  /** Ids of what was deleted. */
  deleted: string[];
}

/** Who undoes what, in words. @param applied what Kindstack applies, of which `edited` are the live objects */
export function describeContest({ edited, deleted }: Contest, applied: readonly Manifest[]): string {
  const manifests = new Map(applied.map((manifest) => [objectId(manifest), manifest]));
  const taken = edited.flatMap((live) => {
    const manifest = manifests.get(objectId(live));
    const fields = manifest === undefined ? [] : contestedFields(live, manifest);
    return fields.map(({ field, manager }) => `${live.kind} ${live.metadata.name}: ${field} is also set by ${manager}`);
  });
  const texts = [...taken, ...deleted.map((id) => `${id} is deleted by somebody`)];
  return texts.join("; ") || "fields are removed as soon as they are put right";
}

/** A field that somebody else took, and who that is. */
interface ContestedField {
  field: string;
  manager: string;
}

/** Which fields of a manifest are others' in a drifted object, by the API server's own books. */
function contestedFields(live: LiveObject, manifest: Manifest): ContestedField[] {
  const { managedFields = [] } = live.metadata;
  const paths = ({ fieldsV1 = {} }: ManagedFieldsEntry) => fieldPaths(fieldsV1, manifest, "");
  const ours = new Set(managedFields.filter(isOurs).flatMap(paths));
  return managedFields
    .filter((entry) => !isOurs(entry))
    .flatMap((entry) => paths(entry).map((field) => ({ field, manager: entry.manager ?? "an unnamed manager" })))
    .filter(({ field }) => !ours.has(field));
}

function isOurs({ manager, operation, subresource }: ManagedFieldsEntry): boolean {
  return manager === FIELD_MANAGER && operation === "Apply" && !subresource;
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
