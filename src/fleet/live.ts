import { errorMessageOf } from "../../providers/errors";
import type { LiveObject, Manifest } from "../../providers/kubernetes/client";
import type { Lookup } from "../../providers/kubernetes/lookup";
import { DEFINITION_TYPE } from "../../stacks/contract/crd";
import { type AnyKind, kindName } from "../../stacks/contract/kind";

/** The live objects of a kind, and what limits that. */
export interface LiveObjects {
  objects: LiveObject[];
  notes: string[];
  unchecked: string[];
}

interface Reader {
  look(manifest: Manifest): Promise<Lookup>;
  list(kind: AnyKind, namespace: string | undefined): Promise<LiveObject[]>;
}

/**
 * All live objects of a kind whose program or schema is yet to be rolled out: in a version that the cluster serves today,
 * which need not be the one that the kind is to be stored in.
 */
export async function liveObjects(reader: Reader, kind: AnyKind, namespace: string | undefined): Promise<LiveObjects> {
  const name = kindName(kind);
  const found: LiveObjects = { objects: [], notes: [], unchecked: [] };
  const unlisted = (why: string) => ({ ...found, unchecked: [`the objects of ${name} could not be listed: ${why}`] });
  const definition = await reader.look({ ...DEFINITION_TYPE, metadata: { name } });
  if (definition.outcome === "unknown") return unlisted(errorMessageOf(definition.error));
  if (definition.outcome === "absent") {
    return { ...found, notes: [newKind(name)] };
  }
  const live = servedVersions(definition.object);
  const own = versionsOf(kind);
  found.notes = live
    .filter((version) => !own.includes(version))
    .map((version) => `${name}: the cluster serves ${version}, and this program does not`);
  const version = own.find((one) => live.includes(one));
  if (version === undefined) return unlisted(`it serves none of ${live.join(", ")}`);
  try {
    return { ...found, objects: await reader.list({ ...kind, version }, namespace) };
  } catch (error) {
    return unlisted(errorMessageOf(error));
  }
}

export function newKind(name: string): string {
  return `${name} is new: the cluster has no objects of it`;
}

/** The versions that a kind serves, the stored one first. */
function versionsOf({ version, capabilities: { versions = [] } }: AnyKind): string[] {
  return [version, ...versions.map(({ version }) => version)];
}

function servedVersions({ spec }: Manifest): string[] {
  const { versions } = spec as { versions: { name: string; served: boolean }[] };
  return versions.filter(({ served }) => served).map(({ name }) => name);
}
