import { errorMessageOf } from "../../providers/errors";
import type { Manifest } from "../../providers/kubernetes/client";
import { DEFINITION_TYPE } from "../../stacks/contract/crd";
import { type AnyKind, kindName } from "../../stacks/contract/kind";
import { liveCandidate } from "./candidate";
import type { ClusterView } from "./cluster-view";
import type { Selection } from "./preview";

/**
 * All live objects of kinds whose program or schema is yet to be rolled out: in a version that the cluster serves today, which
 * need not be the one that the kind is to be stored in.
 */
export async function selectFleet(
  cluster: ClusterView,
  kinds: readonly AnyKind[],
  namespace: string | undefined,
): Promise<Selection> {
  const selections = await Promise.all(kinds.map((kind) => selectKind(cluster, kind, namespace)));
  return {
    candidates: selections.flatMap(({ candidates }) => candidates),
    notes: selections.flatMap(({ notes = [] }) => notes),
    unchecked: selections.flatMap(({ unchecked = [] }) => unchecked),
    problems: [],
    ignored: 0,
  };
}

async function selectKind(
  cluster: ClusterView,
  kind: AnyKind,
  namespace: string | undefined,
): Promise<Pick<Selection, "candidates" | "notes" | "unchecked">> {
  const name = kindName(kind);
  const none = { candidates: [], unchecked: [] };
  const unlisted = (why: string) => ({ ...none, unchecked: [`the objects of ${name} could not be listed: ${why}`] });
  const found = await cluster.look({ ...DEFINITION_TYPE, metadata: { name } });
  if (found.outcome === "unknown") return unlisted(errorMessageOf(found.error));
  if (found.outcome === "absent") return { ...none, notes: [`${name} is new: the cluster has no objects of it`] };
  const live = servedVersions(found.object);
  const own = [kind.version, ...(kind.capabilities.versions ?? []).map(({ version }) => version)];
  const notes = live
    .filter((version) => !own.includes(version))
    .map((version) => `${name}: the cluster serves ${version}, and this program does not`);
  const version = own.find((one) => live.includes(one));
  if (version === undefined) return { ...unlisted(`it serves none of ${live.join(", ")}`), notes };
  try {
    const objects = await cluster.list({ ...kind, version }, namespace);
    return { candidates: objects.map((live) => liveCandidate(kind, live)), notes, unchecked: [] };
  } catch (error) {
    return { ...unlisted(errorMessageOf(error)), notes };
  }
}

function servedVersions({ spec }: Manifest): string[] {
  const { versions } = spec as { versions: { name: string; served: boolean }[] };
  return versions.filter(({ served }) => served).map(({ name }) => name);
}
