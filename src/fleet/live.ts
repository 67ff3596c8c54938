import { isDeepStrictEqual } from "node:util";
import { errorMessageOf } from "../../providers/errors";
import type { LiveObject, Manifest } from "../../providers/kubernetes/client";
import type { Lookup } from "../../providers/kubernetes/types";
import { DEFINITION_TYPE } from "../../stacks/contract/crd";
import { parseLive } from "../../stacks/contract/declared";
import { type AnyKind, kindName } from "../../stacks/contract/kind";

interface LiveObjects {
  /** In the version in which they are stored when they are written. */
  objects: LiveObject[];
  /** The same objects in other versions, in which they may be stored. */
  alternatives: LiveObject[];
  /** All versions in which objects may be stored. */
  stored: string[];
  notes: string[];
  unchecked: string[];
}

interface Reader {
  look(manifest: Manifest): Promise<Lookup>;
  list(kind: AnyKind, namespace: string | undefined): Promise<LiveObject[]>;
}

/**
 * All live objects of a kind whose program or schema is yet to be rolled out, as they are stored: it is the new definition that
 * converts them then, and not the one that the cluster has today.
 */
export async function liveObjects(reader: Reader, kind: AnyKind, namespace: string | undefined): Promise<LiveObjects> {
  const name = kindName(kind);
  const found: LiveObjects = { objects: [], alternatives: [], stored: [], notes: [], unchecked: [] };
  const unlisted = (why: string) => ({ ...found, unchecked: [`the objects of ${name} could not be listed: ${why}`] });
  const definition = await reader.look({ ...DEFINITION_TYPE, metadata: { name } });
  if (definition.outcome === "unknown") return unlisted(errorMessageOf(definition.error));
  if (definition.outcome === "absent") {
    return { ...found, notes: [newKind(name)] };
  }
  const { served, stored, written } = versionsIn(definition.object);
  const own = versionsOf(kind);
  found.stored = stored;
  found.notes = served
    .filter((version) => !own.includes(version))
    .map((version) => `${name}: the cluster serves ${version}, and this program does not`);
  const list = (version: string) => reader.list({ ...kind, version }, namespace);
  try {
    found.objects = await list(written);
    const others = found.objects.length === 0 ? [] : stored.filter((version) => version !== written);
    for (const version of others) found.alternatives.push(...(await list(version)));
    return found;
  } catch (error) {
    return { ...unlisted(errorMessageOf(error)), objects: [], alternatives: [] };
  }
}

export function newKind(name: string): string {
  return `${name} is new: the cluster has no objects of it`;
}

/** Why the definition of a kind that is yet to be rolled out is refused, whatever its objects are. */
export function refusalOf(kind: AnyKind, stored: readonly string[]): string | undefined {
  const own = versionsOf(kind);
  const lost = stored.filter((version) => !own.includes(version));
  if (lost.length === 0) return undefined;
  return `the API server refuses the definition: objects may be stored in ${lost.join(" and ")}, which it does not serve`;
}

/** Tells of each object whether the new definition makes the same of it in each version in which it may be stored. */
export function doubtsOn(kind: AnyKind, alternatives: readonly LiveObject[]) {
  const byUid = Map.groupBy(alternatives, ({ metadata }) => metadata.uid);
  return async (live: LiveObject): Promise<string | undefined> => {
    const others = byUid.get(live.metadata.uid) ?? [];
    if (others.length === 0) return undefined;
    const [first, ...more] = await Promise.all([live, ...others].map((one) => convertedBy(kind, one)));
    if (more.every((other) => isDeepStrictEqual(other, first))) return undefined;
    const versions = [live, ...others].map(({ apiVersion }) => apiVersion.slice(apiVersion.indexOf("/") + 1));
    return `it may be stored in ${versions.join(" or ")}, and is not converted to the same from each: write each object once`;
  };
}

async function convertedBy(kind: AnyKind, live: LiveObject): Promise<unknown> {
  try {
    const { object } = await parseLive(kind, live);
    return { spec: object.spec, annotations: object.metadata.annotations };
  } catch (error) {
    return errorMessageOf(error);
  }
}

/** The versions that a kind serves, the stored one first. */
function versionsOf({ version, capabilities: { versions = [] } }: AnyKind): string[] {
  return [version, ...versions.map(({ version }) => version)];
}

interface Definition {
  spec: { versions: { name: string; served: boolean; storage: boolean }[] };
  status?: { storedVersions?: string[] };
}

function versionsIn(definition: Manifest) {
  const { spec, status = {} } = definition as unknown as Definition;
  const served = spec.versions.filter((version) => version.served).map(({ name }) => name);
  const written = spec.versions.find(({ storage }) => storage)?.name ?? "";
  return { served, written, stored: status.storedVersions ?? [written] };
}
