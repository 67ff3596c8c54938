import pLimit from "p-limit";
import type { LiveObject } from "../../providers/kubernetes/client";
import { type AnyKind, kindName } from "../../stacks/contract/kind";
import { kindOf } from "../../stacks/contract/kind-name";
import type { Manifests, SourcedManifest } from "../../stacks/contract/manifests";
import { objectKey } from "../../stacks/contract/object";
import { type Planned, rowConflictFinder, withConflicts } from "./conflicts";
import { type Candidate, noteRenamings, type PlanOptions, planObject } from "./plan";
import { countActions, type Report } from "./report";

export interface PreviewOptions extends PlanOptions {
  /** Told of every object that is done. */
  observe?(done: number, total: number): void;
}

/** What there is to be previewed, and what was found wrong on the way. */
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
  const present = new Map<string, Candidate>();
  const problems = [...manifests.problems];
  let ignored = 0;
  for (const source of manifests.objects) {
    const candidate = candidateOf(kinds, namespace, source, false);
    if (candidate === undefined) {
      ignored++;
      continue;
    }
    const id = identityOf(candidate);
    const first = present.get(id);
    if (first === undefined) present.set(id, candidate);
    else problems.push({ file: source.file, message: `${id} is in ${first.file} already` });
  }
  // What a file has that cannot be read is not known, so nothing in it counts as removed.
  const unread = new Set(manifests.problems.map(({ file }) => file));
  const removed = new Map<string, Candidate>();
  for (const source of before.objects) {
    const candidate = candidateOf(kinds, namespace, source, true);
    if (candidate === undefined || unread.has(source.file)) continue;
    const id = identityOf(candidate);
    if (!present.has(id)) removed.set(id, candidate);
  }
  return { candidates: [...present.values(), ...removed.values()], problems, ignored };
}

/** What is in the cluster, for a comparison with its state. */
export function candidateOfLive(kind: AnyKind, object: LiveObject): Candidate {
  return { kind, manifest: object, removed: object.metadata.deletionTimestamp !== undefined };
}

/** Objects that are looked at together; how many previews run is the {@link StackReader}'s to say. */
const AT_ONCE = 64;

/** Previews all of a selection, several at a time. One that fails does not stop the others. */
export async function preview(
  options: PreviewOptions,
  { candidates, problems, ignored }: Selection,
  notes: string[] = [],
): Promise<Report> {
  const findRowConflict = rowConflictFinder();
  let done = 0;
  const planned = await pLimit(AT_ONCE).map(candidates, async (candidate) => {
    const plan = await planObject({ ...options, findRowConflict }, candidate);
    options.observe?.(++done, candidates.length);
    return plan;
  });
  const objects = noteRenamings(withConflicts(planned), candidates);
  return {
    summary: countActions(objects.map(({ action }) => action)),
    objects,
    problems,
    ignored,
    notes: [...notes, ...noteUnseen(planned)],
  };
}

/** What could not be looked at mostly has one cause; the first is enough to go by. */
function noteUnseen(planned: readonly Planned[]): string[] {
  const [why, ...others] = new Set(planned.flatMap(({ unseen }) => unseen));
  if (why === undefined) return [];
  const more = others.length > 0 ? `; and ${others.length} more` : "";
  return [`could not look up the owners of all resources: ${why}${more}`];
}

function candidateOf(
  kinds: readonly AnyKind[],
  namespace: string,
  { manifest, file }: SourcedManifest,
  removed: boolean,
): Candidate | undefined {
  const kind = kindOf(kinds, manifest);
  if (kind === undefined) return undefined;
  const { namespace: written, ...metadata } = manifest.metadata;
  const placed = kind.scope === "Namespaced" ? { namespace: written || namespace, ...metadata } : metadata;
  return { kind, manifest: { ...manifest, metadata: placed }, file, removed };
}

/** `postgreswriters.demo.yash.com/default/sample-student` */
function identityOf({ kind, manifest }: Candidate): string {
  return `${kindName(kind)}/${objectKey(manifest.metadata)}`;
}
