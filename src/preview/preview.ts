import pLimit from "p-limit";
import { type AnyKind, kindName, ownerDescription } from "../../stacks/contract/kind";
import type { Manifests } from "../../stacks/contract/manifests";
import { objectKey } from "../../stacks/contract/object";
import type { ManifestDocument } from "../../stacks/contract/parse-manifests";
import { identityOf, selectDeclared } from "../../stacks/contract/select-manifests";
import type { ClusterView } from "./cluster-view";
import { addConflicts, type Claimant, conflictFinder, type Planned } from "./conflicts";
import { checkPlans } from "./dry-run";
import { type Candidate, claimsOf, type PlanOptions, planObject } from "./plan";
import { countActions, type ObjectPlan, type Report } from "./report";

export interface PreviewOptions extends PlanOptions {
  /** What limits the whole report. */
  notes?: readonly string[];
  /** Told how many objects there are, and again of every one that is done. */
  observe?: ((done: number, total: number) => void) | undefined;
}

/** The objects to preview, and the problems found while selecting them. */
export interface Selection {
  candidates: Candidate[];
  problems: Report["problems"];
  ignored: number;
  /** What is not read as its author may expect. */
  notes?: readonly string[];
  /** The namespaces that the files have. */
  namespaces?: readonly string[];
}

/**
 * Picks the objects of known kinds out of manifests.
 *
 * @param before the manifests of another revision; what they have and `manifests` have not is removed
 * @param namespace for namespaced objects that name none
 */
export function selectCandidates(
  kinds: readonly AnyKind[],
  namespace: string,
  manifests: Manifests,
  before: Manifests = { objects: [], problems: [] },
): Selection {
  const { declared, problems, ignored } = selectDeclared(kinds, namespace, manifests.objects);
  const present = new Set(declared.map(identityOf));
  // The contents of an unreadable file are unknown, so nothing in it counts as removed.
  const unread = new Set(manifests.problems.map(({ file }) => file));
  const removed = selectDeclared(kinds, namespace, before.objects).declared.filter(
    (candidate) => !present.has(identityOf(candidate)) && !unread.has(candidate.file),
  );
  return {
    candidates: [
      ...declared.map((candidate) => ({ ...candidate, removed: false })),
      ...removed.map((candidate) => ({ ...candidate, removed: true })),
    ],
    problems: [...manifests.problems, ...problems],
    ignored,
    notes: manifests.notes ?? [],
    namespaces: manifests.objects.flatMap(({ manifest }) => namespaceIn(manifest)),
  };
}

function namespaceIn({ apiVersion, kind, metadata }: ManifestDocument): string[] {
  const { name } = (metadata ?? {}) as { name?: unknown };
  return apiVersion === "v1" && kind === "Namespace" && typeof name === "string" ? [name] : [];
}

/** Objects that are planned at the same time, each with a connection of its own; the engine limits the previews. */
const AT_ONCE = 16;

/** Previews all of a selection, several at a time. One that fails does not stop the others. */
export async function preview(
  { notes = [], observe, ...options }: PreviewOptions,
  { candidates, problems, ignored, notes: selected = [], namespaces = [] }: Selection,
): Promise<Report> {
  const findConflicts = conflictFinder(options.cluster);
  let done = 0;
  observe?.(done, candidates.length);
  const planned = await pLimit(AT_ONCE).map(candidates, async (candidate) => {
    const plan = await planObject(options, findConflicts, candidate);
    observe?.(++done, candidates.length);
    return plan;
  });
  addConflicts(planned, await otherClaims(options.cluster, candidates));
  await checkPlans(planned, options.cluster, new Set(namespaces));
  const objects = planned.map(({ plan }) => plan);
  noteRenamings(objects, candidates);
  const summary = countActions(objects.map(({ action }) => action));
  return {
    summary,
    objects,
    problems,
    ignored,
    notes: [...notes, ...selected, ...noteUnseen(planned)],
    unseenDeletions: [],
  };
}

/** What objects of the cluster hold that are not among the candidates. */
async function otherClaims(cluster: ClusterView, candidates: readonly Candidate[]): Promise<Claimant[]> {
  const present = new Set(candidates.map(identityOf));
  const claiming = new Set(candidates.filter(({ removed }) => !removed).map(({ kind }) => kind));
  const lists = [...claiming].map(async (kind) => {
    if (kind.capabilities.claims === undefined || cluster.unreachable !== undefined) return [];
    const live = await cluster.list(kind, undefined).catch(() => []);
    return live
      .filter((manifest) => !present.has(identityOf({ kind, manifest })))
      .map((manifest) => ({
        owner: ownerDescription(kind, objectKey(manifest.metadata)),
        claims: claimsOf(kind, manifest),
      }));
  });
  return (await Promise.all(lists)).flat();
}

/** Failed lookups mostly have one cause, so one is shown. */
function noteUnseen(planned: readonly Planned[]): string[] {
  const [why, ...others] = new Set(planned.flatMap(({ unseen }) => unseen));
  if (why === undefined) return [];
  const more = others.length > 0 ? `; and ${others.length} more` : "";
  return [`could not look up the owners of all resources: ${why}${more}`];
}

/** Notes removed and new objects that differ only in their names: the author may have meant a rename. */
function noteRenamings(plans: readonly ObjectPlan[], candidates: readonly Candidate[]): void {
  const specOf = ({ kind, manifest }: Candidate) => `${kindName(kind)} ${JSON.stringify(manifest.spec)}`;
  const made = new Map<string, ObjectPlan>();
  for (const [index, candidate] of candidates.entries()) {
    const plan = plans[index];
    if (plan?.action === "create" && !candidate.removed) made.set(specOf(candidate), plan);
  }
  for (const [index, candidate] of candidates.entries()) {
    const [from, to] = [plans[index], candidate.removed ? made.get(specOf(candidate)) : undefined];
    if (from === undefined || to === undefined) continue;
    from.notes.push(`renamed to ${to.name}: its resources are not moved there`);
    to.notes.push(`renamed from ${from.name}: it gets new resources`);
  }
}
