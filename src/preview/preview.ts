import { setTimeout as delay } from "node:timers/promises";
import pLimit from "p-limit";
import { errorMessageOf } from "../../providers/errors";
import { isApiError, type LiveObject } from "../../providers/kubernetes/client";
import { groupOf } from "../../providers/kubernetes/object-types";
import { known } from "../../providers/kubernetes/types";
import { type AnyKind, kindName, ownerDescription } from "../../stacks/contract/kind";
import type { Manifests } from "../../stacks/contract/manifests";
import { objectKey } from "../../stacks/contract/object";
import type { ManifestDocument, SourcedDocument } from "../../stacks/contract/parse-manifests";
import {
  type DeclaredManifest,
  identityOf,
  type RefusedManifest,
  selectDeclared,
} from "../../stacks/contract/select-manifests";
import { conflictFinder } from "../plan/obstacles";
import { UNCHECKED } from "../plan/resource-plan";
import type { ClusterView } from "./cluster-view";
import { addConflicts, type Claimant, type Planned } from "./conflicts";
import { checkPlans } from "./dry-run";
import { checkPrerequisites, madeBy, typesOf, type UnknownDocument } from "./prerequisites";
import { previewObject } from "./preview-object";
import { type Candidate, claimsOf, type PlanOptions } from "./preview-update";
import { newPlan, newReport, type ObjectPlan, type Report } from "./report";

export interface PreviewOptions extends PlanOptions {
  /** What limits the whole report. */
  notes?: readonly string[];
  /** Told how many objects there are, and again of every one that is done. */
  onProgress?: ((done: number, total: number) => void) | undefined;
  /** Whether updates of the same process run, which have priority; undefined where there are none. */
  isBusy?: (() => boolean) | undefined;
}

/** The objects to preview, and the problems found while selecting them. */
export interface Selection {
  candidates: Candidate[];
  problems?: Report["problems"];
  /** How many objects are of other kinds. */
  ignored?: number;
  /** What is not read as its author may expect. */
  notes?: readonly string[];
  /** All documents, which may make what others need. */
  documents?: readonly ManifestDocument[];
  /** Objects that the API server refuses for their metadata. */
  refused?: readonly RefusedManifest[];
  unknown?: readonly UnknownDocument[];
  /** Why it cannot be told what is removed. */
  doubt?: string | undefined;
  unseenDeletions?: readonly string[];
  /** What could not be looked up while the objects were selected. */
  unchecked?: readonly string[];
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
  const { declared, refused, unnamed, repeated, unknown, ignored } = selectDeclared(
    kinds,
    namespace,
    manifests.objects,
  );
  const earlier = selectDeclared(kinds, namespace, before.objects);
  const unread = [...manifests.problems, ...unnamed];
  const selection: Selection = {
    candidates: declared.map((candidate) => ({ ...candidate, removed: false })),
    problems: [...unread, ...repeated],
    ignored,
    notes: manifests.notes ?? [],
    documents: manifests.objects.map(({ manifest }) => manifest),
    refused,
    unknown: unknown.map((document) => ({ ...document, siblings: siblingsOf(kinds, document) })),
    doubt: doubtOf(unread),
    unseenDeletions: earlier.unnamed.map(({ file, message }) => `${file} of the other revision: ${message}`),
  };
  // What was refused for its metadata at the other revision may have been applied before it came to this.
  const had = [...earlier.declared, ...earlier.refused.map(withoutTexts)];
  return withRemoved(selection, had);
}

function siblingsOf(kinds: readonly AnyKind[], { manifest }: SourcedDocument): string[] {
  return kinds.filter(({ group }) => group === groupOf(manifest.apiVersion)).map(({ kind }) => kind);
}

/** What a file hides may be what seems to be removed: it may have moved there. */
function doubtOf([first, ...others]: Report["problems"]): string | undefined {
  if (first === undefined) return undefined;
  const more = others.length > 0 ? ` and ${others.length} more` : "";
  return `whether it is deleted cannot be told: it may be in ${first.file}${more}, where not all could be read`;
}

/** Why an object may be there by another type: a document has its name, and its group or its kind. */
function misspeltIn(documents: readonly ManifestDocument[], { kind, manifest }: Pick<Candidate, "kind" | "manifest">) {
  const { name } = manifest.metadata;
  const alike = documents.find(({ apiVersion, kind: word, metadata }) => {
    const [isOfKind, isOfGroup] = [word === kind.kind, groupOf(apiVersion) === kind.group];
    return isOfKind !== isOfGroup && (metadata as { name?: unknown } | null | undefined)?.name === name;
  });
  if (alike === undefined) return undefined;
  return `whether it is deleted cannot be told: a file has a ${alike.kind} of ${alike.apiVersion} that is called so`;
}

function withoutTexts({ kind, apiVersion, metadata, file }: RefusedManifest): DeclaredManifest {
  return { kind, file, manifest: { apiVersion, kind: kind.kind, metadata } };
}

/** Those of other objects that a selection lacks are candidates for removal. */
export function withRemoved(
  selection: Selection,
  others: readonly (Omit<DeclaredManifest, "file"> & { file?: string })[],
): Selection {
  const { candidates, refused = [], documents = [] } = selection;
  const present = new Set([...candidates, ...refused.map(withoutTexts)].map(identityOf));
  const removed = others
    .filter((candidate) => !present.has(identityOf(candidate)))
    .map((candidate) => {
      const doubt = selection.doubt ?? misspeltIn(documents, candidate);
      return { ...candidate, removed: true, ...(doubt !== undefined && { doubt }) };
    });
  return { ...selection, candidates: [...candidates, ...removed] };
}

/** Objects that are planned at the same time, each with a connection of its own; the engine limits the previews. */
const AT_ONCE = 16;

/** Previews all of a selection, several at a time. One that fails does not stop the others. */
export async function preview(
  { notes = [], onProgress, isBusy, ...options }: PreviewOptions,
  selection: Selection,
): Promise<Report> {
  const { cluster } = options;
  const { candidates, problems = [], ignored = 0, notes: selected = [], documents = [], refused = [] } = selection;
  const findConflicts = conflictFinder();
  let done = 0;
  onProgress?.(done, candidates.length);
  const planned = await pLimit(isBusy ? BESIDE_UPDATES : AT_ONCE).map(candidates, async (candidate) => {
    if (isBusy) await untilUpdatesRest(isBusy);
    const plan = await previewObject(options, findConflicts, candidate);
    onProgress?.(++done, candidates.length);
    return plan;
  });
  const made = madeBy(planned, documents);
  const others = await otherClaims(cluster, candidates);
  const typed = await typesOf(cluster, selection.unknown ?? [], made);
  addConflicts(planned, others.claims);
  await checkPrerequisites(planned, cluster, made);
  await checkPlans(planned, cluster, made);
  for (const one of planned) settle(one);
  const objects = [...planned.map(({ plan }) => plan), ...refused.map(refusedPlan)];
  noteRenamings(objects, candidates);
  const unchecked = [...(selection.unchecked ?? []), ...others.unknown, ...typed.unknown];
  return {
    ...newReport(objects),
    problems: [...problems, ...typed.problems],
    ignored: ignored + typed.foreign,
    notes: [...notes, ...selected],
    unchecked,
    unseenDeletions: [...(selection.unseenDeletions ?? [])],
  };
}

/** Where something is unknown, so is what would happen. What is not known to be done has no digest that could be approved. */
function settle({ plan, unknown }: Planned): void {
  plan.errors.push(...unknown);
  if (unknown.length > 0 && plan.action !== "failed" && plan.action !== "invalid") plan.action = UNCHECKED;
  if (plan.action !== "failed" && plan.action !== UNCHECKED) return;
  delete plan.digest;
  delete plan.group;
}

function refusedPlan({ kind, file, apiVersion, metadata, message }: RefusedManifest): ObjectPlan {
  const plan = newPlan(kind, apiVersion, metadata, file);
  return { ...plan, action: "invalid", validatedBy: "schema", errors: [message] };
}

/** What objects of the cluster hold that are not among the candidates. */
async function otherClaims(
  cluster: ClusterView,
  candidates: readonly Candidate[],
): Promise<{ claims: Claimant[]; unknown: string[] }> {
  const present = new Set(candidates.map(identityOf));
  // What live objects claim is theirs already.
  const claiming = new Set(candidates.flatMap(({ kind, removed, declared }) => (removed || declared ? [] : [kind])));
  const found: { claims: Claimant[]; unknown: string[] } = { claims: [], unknown: [] };
  if (cluster.unreachable !== undefined) return found; // which each object says
  for (const kind of claiming) {
    if (kind.capabilities.claims === undefined) continue;
    try {
      const others = (await listServed(cluster, kind)).filter(
        (manifest) => !present.has(identityOf({ kind, manifest })),
      );
      const claims = others.map(async (manifest) => ({
        owner: ownerDescription(kind, objectKey(manifest.metadata)),
        claims: await claimsOf(kind, manifest),
      }));
      found.claims.push(...(await Promise.all(claims)));
    } catch (error) {
      found.unknown.push(
        `what other objects of ${kindName(kind)} have could not be looked up: ${errorMessageOf(error)}`,
      );
    }
  }
  return found;
}

/** The objects of a kind in all namespaces or in one, which a cluster need not serve. @throws Error when that cannot be told */
export async function listServed(
  cluster: ClusterView,
  kind: AnyKind,
  namespace?: string,
  labelSelector?: string,
): Promise<LiveObject[]> {
  return cluster.list(kind, namespace, labelSelector).catch(async (error) => {
    if (!isApiError(error, 404)) throw error;
    await known(cluster.get(kind, "any", "any")); // throws, unless it is certain that none exists
    return [];
  });
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

const LOOK_EVERY_MS = 5;
/** There may always be updates: an object does not wait longer for them. */
const MOST_MS = 250;

/** How many objects are planned at the same time where they share a process with updates. */
const BESIDE_UPDATES = 2;

/** Waits while updates run, as they have priority. */
export async function untilUpdatesRest(isBusy: () => boolean): Promise<void> {
  for (let waitedMs = 0; isBusy() && waitedMs < MOST_MS; waitedMs += LOOK_EVERY_MS) await delay(LOOK_EVERY_MS);
}
