import { errorMessageOf } from "../../providers/errors";
import type { LiveObject } from "../../providers/kubernetes/client";
import { DEFINITION_TYPE } from "../../stacks/contract/crd";
import { type AnyKind, kindName, kindType } from "../../stacks/contract/kind";
import { doubtsOn, liveObjects, newKind, refusalOf } from "../fleet/live";
import { Refusal } from "../http/refusal";
import type { Requests } from "./api";
import type { ClusterView } from "./cluster-view";
import type { Selection } from "./preview";
import { type Candidate, liveCandidate } from "./preview-update";

/** All live objects of kinds whose program or schema is yet to be rolled out. */
export async function selectFleet(
  cluster: ClusterView,
  kinds: readonly AnyKind[],
  namespace: string | undefined,
): Promise<Selection> {
  const all = await Promise.all(
    kinds.map(async (kind) => ({ kind, ...(await liveObjects(cluster, kind, namespace)) })),
  );
  const candidates = all.map(async ({ kind, objects, alternatives, stored }) => {
    const refused = refusalOf(kind, stored);
    const doubtOf = doubtsOn(kind, alternatives);
    return Promise.all(
      objects.map(async (live): Promise<Candidate> => {
        if (refused !== undefined) return { ...liveCandidate(kind, live), refused };
        const doubt = await doubtOf(live);
        return { ...liveCandidate(kind, live), ...(doubt !== undefined && { doubt }) };
      }),
    );
  });
  return {
    candidates: (await Promise.all(candidates)).flat(),
    notes: all.flatMap(({ notes }) => notes),
    unchecked: all.flatMap(({ unchecked }) => unchecked),
  };
}

const DECLARED =
  "this is what programs have declared where they ran, and no proof: a program may notice that it runs in a preview";

/** The live objects for which programs have declared something elsewhere. @throws Refusal for what names no object */
export function selectFleetDeclared(kinds: readonly AnyKind[], request: Requests["/v1/fleet"]): Selection {
  const { objects, providers } = request;
  const selection: Selection = { candidates: [], unchecked: [], notes: [DECLARED] };
  const byName = new Map(kinds.map((kind) => [kindName(kind), kind]));
  const unknown = new Map<string, number>();
  const seen = new Set<string>();
  for (const { kind: of, namespace, name, ...said } of objects) {
    const kind = byName.get(of);
    const id = JSON.stringify([of, namespace, name]);
    if (seen.has(id)) throw new Refusal(400, "BadRequest", `${of} ${name} is there twice`);
    seen.add(id);
    if (kind === undefined) {
      unknown.set(of, (unknown.get(of) ?? 0) + 1);
      continue;
    }
    if ((kind.scope === "Namespaced") !== (namespace !== undefined)) {
      throw new Refusal(400, "BadRequest", `${of} ${name}: objects of ${kind.kind} are ${kind.scope}`);
    }
    const metadata = { name, ...(namespace !== undefined && { namespace }) };
    const manifest = { ...kindType(kind), metadata } as LiveObject;
    selection.candidates.push({ kind, manifest, removed: false, declared: { ...said, providers } });
  }
  const others = [...unknown].map(([of, count]) => `${count} objects of ${of}, which is not installed`);
  return { ...selection, unchecked: others };
}

/** Whether there may be objects of kinds that were not looked for. */
export async function lookForKinds(
  cluster: ClusterView,
  kinds: readonly string[],
): Promise<Required<Pick<Selection, "notes" | "unchecked">>> {
  const found = { notes: [] as string[], unchecked: [] as string[] };
  for (const name of kinds) {
    const lookup = await cluster.look({ ...DEFINITION_TYPE, metadata: { name } });
    if (lookup.outcome === "absent") found.notes.push(newKind(name));
    else if (lookup.outcome === "found") found.unchecked.push(`the objects of ${name}, which were not fetched`);
    else found.unchecked.push(`whether there are objects of ${name}: ${errorMessageOf(lookup.error)}`);
  }
  return found;
}
