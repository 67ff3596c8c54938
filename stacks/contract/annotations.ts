import type { Manifest } from "../../providers/kubernetes/client";
import { covers } from "../../providers/kubernetes/field-path";
import { ignoredPaths, parseIgnoredFields } from "../../providers/kubernetes/ignored-fields";
import { PAUSED, PAUSED_ANNOTATION } from "../../providers/kubernetes/managed-owner";
import { CREATED_ANNOTATION, OWNER_ANNOTATION } from "../../providers/kubernetes/ownership";
import { inAnyCase, type Spelling, spellingOf } from "../../providers/spelling";
import { MODE_ANNOTATION, MODE_SPELLING, type Mode, modeOfNamespace, strictest } from "./mode";

export { PAUSED_ANNOTATION };

/** Any new value asks for one update that compares everything with the real world. */
export const RECONCILE_ANNOTATION = "kindstack.dev/reconcile";
/** `Orphan` keeps what an object made when the object is deleted. */
export const DELETION_POLICY_ANNOTATION = "kindstack.dev/deletion-policy";
/** Fields of what an object made that are left to others: `Deployment/web:spec.replicas`; several, one after the other. */
export const IGNORE_FIELDS_ANNOTATION = "kindstack.dev/ignore-fields";
/** What becomes of an object whose state is lost; it is removed when that is done. */
export const STATE_MISSING_ANNOTATION = "kindstack.dev/state-missing";
/** Written by Kindstack: when a deletion of the object was asked for with the propagation policy `Orphan`. */
export const ORPHANED_ANNOTATION = "kindstack.dev/orphaned";
/** Written by the API server where the author of a change may not approve it: who changed the object; see author-policy.ts. */
export const AUTHOR_ANNOTATION = "kindstack.dev/changed-by";

/**
 * What a user decides where the state of an object is lost: to take over what its program finds and make the rest, to make
 * all of it once more, or to delete the object with what carries its mark and no more.
 */
export const STATE_DECISIONS = spellingOf(["Adopt", "Recreate", "Forget"]);
export type StateDecision = (typeof STATE_DECISIONS.words)[number];

/** Of the keys that Kindstack reads, or that a user takes for one; for policies as well. */
export const KEY_PATTERN = `^${inAnyCase("kindstack.dev/")}`;
const KEY = new RegExp(KEY_PATTERN);

const DELETION_POLICY = spellingOf(["Orphan", "Delete"]);

/** Annotations that a user sets, with the values that each may have; `undefined` for any. */
export const USER_ANNOTATIONS: Readonly<Record<string, Spelling | undefined>> = {
  [PAUSED_ANNOTATION]: PAUSED,
  [DELETION_POLICY_ANNOTATION]: DELETION_POLICY,
  [MODE_ANNOTATION]: MODE_SPELLING as Spelling,
  [STATE_MISSING_ANNOTATION]: STATE_DECISIONS as Spelling,
  [RECONCILE_ANNOTATION]: undefined,
  [IGNORE_FIELDS_ANNOTATION]: undefined,
};

export const OWN_ANNOTATIONS: readonly string[] = [
  ORPHANED_ANNOTATION,
  AUTHOR_ANNOTATION,
  OWNER_ANNOTATION,
  CREATED_ANNOTATION,
];

interface ObeyedAnnotations {
  paused: boolean;
  /** Whether its resources stay when the object is deleted. */
  releases: boolean;
  /** The value that asks for an update, if there is one. */
  requested: string | undefined;
  ignoreFields: readonly string[];
  stateDecision: StateDecision | undefined;
  /** The mode that it sets for itself. */
  mode: Mode | undefined;
  /** What cannot be understood. Until it is corrected the object is paused: it may have been meant to protect it. */
  problem: string | undefined;
}

/** Reads an object's annotations, without regard to case and to blanks around a value. */
export function obeyedAnnotations({ metadata }: Pick<Manifest, "metadata">): ObeyedAnnotations {
  const { annotations = {}, labels = {} } = metadata;
  const read = (spelling: Spelling, key: string) => spelling.read(annotations[key] ?? "");
  const label = Object.keys(labels).find((key) => Object.hasOwn(USER_ANNOTATIONS, key));
  const problem = label === undefined ? annotationProblem(annotations) : `label ${label}: it must be an annotation`;
  return {
    paused: problem !== undefined || read(PAUSED, PAUSED_ANNOTATION) === "true",
    releases: read(DELETION_POLICY, DELETION_POLICY_ANNOTATION) === "Orphan" || wasOrphaned(metadata),
    requested: annotations[RECONCILE_ANNOTATION],
    ignoreFields: parseIgnoredFields(annotations[IGNORE_FIELDS_ANNOTATION] ?? "").fields,
    stateDecision: STATE_DECISIONS.read(annotations[STATE_MISSING_ANNOTATION] ?? ""),
    mode: MODE_SPELLING.read(annotations[MODE_ANNOTATION] ?? ""),
    problem,
  };
}

/** What users ask for of an object, by its annotations and by modes; what cannot be understood pauses the object. */
export interface Settings extends ObeyedAnnotations {
  /** The strictest of the modes that are set for the object. */
  mode: Mode;
}

/** @param namespace the object's, if its mode counts @param configured the mode that the operator is told for the kind */
export function settingsOf(
  object: Pick<Manifest, "metadata">,
  namespace: Pick<Manifest, "metadata"> | undefined,
  configured: Mode | undefined,
): Settings {
  const obeyed = obeyedAnnotations(object);
  const set = namespace === undefined ? {} : modeOfNamespace(namespace);
  const problem = obeyed.problem ?? set.problem;
  const mode = strictest([obeyed.mode, set.mode, configured]);
  return { ...obeyed, mode, paused: obeyed.paused || problem !== undefined, problem };
}

/** Whether an object leaves a field of what it made to others. */
export function leavesField(
  object: Pick<Manifest, "metadata">,
  made: Pick<Manifest, "kind" | "metadata">,
  field: string,
): boolean {
  return ignoredPaths(obeyedAnnotations(object).ignoreFields, made).some((path) => covers(path, field));
}

/** What is wrong with the first of Kindstack's annotations that cannot be understood, and what is allowed. */
function annotationProblem(annotations: Readonly<Record<string, string>>): string | undefined {
  for (const [key, value] of Object.entries(annotations)) {
    if (!KEY.test(key) || OWN_ANNOTATIONS.includes(key)) continue;
    if (!Object.hasOwn(USER_ANNOTATIONS, key)) {
      return `unknown annotation ${key}; known are ${Object.keys(USER_ANNOTATIONS).join(", ")}`;
    }
    if (key === IGNORE_FIELDS_ANNOTATION) {
      const { problem } = parseIgnoredFields(value);
      if (problem === undefined) continue;
      return `annotation ${key}: ${JSON.stringify(problem.slice(0, 100))} must be <Kind>/<name>:<field>, such as Deployment/web:spec.replicas`;
    }
    const spelling = USER_ANNOTATIONS[key];
    if (spelling !== undefined && spelling.read(value) === undefined) {
      return `annotation ${key}: ${spelling.problem(value)}`;
    }
  }
  return undefined;
}

/** How far apart the clocks of a webhook and of an API server may be, and how long a request may take between them. */
const SAME_DELETION_MS = 60_000;

/**
 * Whether the deletion that is under way was asked for with `--cascade=orphan`. The API server adds the finalizer `orphan`,
 * which the garbage collector soon removes; what Kindstack has recorded of it stays. A record of a deletion that was
 * refused has no effect on a later one.
 */
function wasOrphaned(metadata: Manifest["metadata"]): boolean {
  const { deletionTimestamp, finalizers } = metadata;
  return deletionTimestamp !== undefined && (finalizers?.includes("orphan") || isOrphanRecorded(metadata));
}

/** Whether an annotation says so of the deletion that is under way. */
export function isOrphanRecorded({ annotations = {}, deletionTimestamp = "" }: Manifest["metadata"]): boolean {
  const recorded = annotations[ORPHANED_ANNOTATION] ?? "";
  return Math.abs(Date.parse(recorded) - Date.parse(deletionTimestamp)) <= SAME_DELETION_MS;
}
