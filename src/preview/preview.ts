import pLimit from "p-limit";
import { type AnyKind, kindName } from "../../stacks/contract/kind";
import { kindOf } from "../../stacks/contract/kind-name";
import type { Manifests } from "../../stacks/contract/manifests";
import { objectKey } from "../../stacks/contract/object";
import { addConflicts, conflictFinder, type Planned } from "./conflicts";
import { type Candidate, noteRenamings, type PlanOptions, planObject } from "./plan";
import { countActions, type Report } from "./report";

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
  const present = candidatesOf(kinds, namespace, manifests, false);
  const problems = [...manifests.problems];
  const candidates = new Map<string, Candidate>();
  for (const candidate of present) {
    const id = identityOf(candidate);
    const first = candidates.get(id);
    if (first === undefined) candidates.set(id, candidate);
    else problems.push({ file: candidate.file, message: `${id} is in ${first.file} already` });
  }
  // The contents of an unreadable file are unknown, so nothing in it counts as removed.
  const unread = new Set(manifests.problems.map(({ file }) => file));
  for (const candidate of candidatesOf(kinds, namespace, before, true)) {
    const id = identityOf(candidate);
    if (!candidates.has(id) && !unread.has(candidate.file)) candidates.set(id, candidate);
  }
  return { candidates: [...candidates.values()], problems, ignored: manifests.objects.length - present.length };
}

function candidatesOf(kinds: readonly AnyKind[], namespace: string, { objects }: Manifests, removed: boolean) {
  return objects.flatMap(({ manifest, file }) => {
    const kind = kindOf(kinds, manifest);
    if (kind === undefined) return [];
    const { namespace: written, ...metadata } = manifest.metadata;
    const placed = kind.scope === "Namespaced" ? { namespace: written || namespace, ...metadata } : metadata;
    return { kind, manifest: { ...manifest, metadata: placed }, file, removed };
  });
}

/** `postgreswriters.demo.yash.com/default/sample-student` */
function identityOf({ kind, manifest }: Candidate): string {
  return `${kindName(kind)}/${objectKey(manifest.metadata)}`;
}

/** Objects that are planned at the same time; the {@link StackReader} limits the previews. */
const AT_ONCE = 64;

/** Previews all of a selection, several at a time. One that fails does not stop the others. */
export async function preview(
  { notes = [], observe, ...options }: PreviewOptions,
  { candidates, problems, ignored }: Selection,
): Promise<Report> {
  const findConflicts = conflictFinder(options.cluster);
  let done = 0;
  observe?.(done, candidates.length);
  const planned = await pLimit(AT_ONCE).map(candidates, async (candidate) => {
    const plan = await planObject(options, findConflicts, candidate);
    observe?.(++done, candidates.length);
    return plan;
  });
  addConflicts(planned);
  const objects = planned.map(({ plan }) => plan);
  noteRenamings(objects, candidates);
  const summary = countActions(objects.map(({ action }) => action));
  return { summary, objects, problems, ignored, notes: [...notes, ...noteUnseen(planned)] };
}

/** Failed lookups mostly have one cause, so one is shown. */
function noteUnseen(planned: readonly Planned[]): string[] {
  const [why, ...others] = new Set(planned.flatMap(({ unseen }) => unseen));
  if (why === undefined) return [];
  const more = others.length > 0 ? `; and ${others.length} more` : "";
  return [`could not look up the owners of all resources: ${why}${more}`];
}
