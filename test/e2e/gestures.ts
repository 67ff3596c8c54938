import fc from "fast-check";
import type { LiveObject, Manifest } from "../../providers/kubernetes/client";
import { CREATED_ANNOTATION, OWNER_ANNOTATION, OWNER_UID_LABEL } from "../../providers/kubernetes/ownership";
import {
  DELETION_POLICY_ANNOTATION,
  IGNORE_FIELDS_ANNOTATION,
  ORPHANED_ANNOTATION,
  PAUSED_ANNOTATION,
  RECONCILE_ANNOTATION,
  STATE_MISSING_ANNOTATION,
} from "../../stacks/contract/annotations";
import { MODE_ANNOTATION } from "../../stacks/contract/mode";
import { FINALIZER } from "../../stacks/contract/object";

/*
 * What an editor may try with an object: requests as kubectl sends them, as data, and a generator of sequences.
 */

/** A part of an object, as in a merge patch. */
interface Change {
  metadata?: Record<string, unknown>;
  spec?: Record<string, unknown>;
  status?: Record<string, unknown>;
}

export interface Request {
  method: "DELETE" | "PATCH" | "POST" | "PUT";
  /** What it is sent to, where that is not the object. */
  to?: "/status" | "/scale" | "the collection" | "the namespace" | "another namespace";
  contentType?: string;
  query?: Record<string, string>;
  body: object;
}

/** Where an editor stands: the object as it is, or was, and a change that an update would apply. */
interface Subject {
  live: LiveObject;
  change: object;
}
export type Gesture = (subject: Subject) => Request;
export interface Step {
  /** Of which of the objects. */
  index: number;
  gesture: Gesture;
  /** Whether the editor waits until the operator has done what the gesture calls for. */
  waits: boolean;
}

const pick = <T>(...values: T[]) => fc.constantFrom(...values);

/** How a change is written; what the API server makes of it differs in what is left out. */
const TOOLS: Record<string, (live: LiveObject, change: Change) => Request> = {
  patch: (_, body) => ({ method: "PATCH", contentType: "application/merge-patch+json", body }),
  "patch --type=json": (_, change) => ({
    method: "PATCH",
    contentType: "application/json-patch+json",
    body: Object.entries(change).flatMap(([part, fields]) =>
      Object.entries(fields).map(([field, value]) => ({ op: "add", path: `/${part}/${field}`, value })),
    ),
  }),
  replace: (live, { metadata, spec, status }) => ({
    method: "PUT",
    body: {
      ...live,
      metadata: { ...live.metadata, ...metadata, resourceVersion: undefined },
      spec: { ...(live.spec as object), ...spec },
      status: { ...(live.status as object), ...status },
    },
  }),
  "apply --server-side": ({ apiVersion, kind, metadata: { name } }, change) => ({
    ...{ method: "PATCH", contentType: "application/apply-patch+yaml", query: { fieldManager: "ed", force: "true" } },
    body: { apiVersion, kind, ...change, metadata: { name, ...change.metadata } },
  }),
};

/** Values that one reader may take for a word and another not. */
const spelled = (...words: string[]) =>
  fc
    .tuple(pick(...words), pick("", "", " ", "\t", "\n", "\u00a0", "\ufeff", "\u2028"), fc.boolean(), fc.boolean())
    .map(([word, blank, before, upper]) => {
      const text = upper ? word.toUpperCase() : word;
      return before ? blank + text : text + blank;
    });

const ANNOTATIONS: Record<string, fc.Arbitrary<string | null>> = {
  [MODE_ANNOTATION]: spelled("Apply", "ProposeDestructive", "Observe", "Propose", ""),
  [MODE_ANNOTATION.toUpperCase()]: spelled("Apply"),
  [PAUSED_ANNOTATION]: spelled("true", "false"),
  [DELETION_POLICY_ANNOTATION]: spelled("Orphan", "Delete"),
  [STATE_MISSING_ANNOTATION]: spelled("Adopt", "Recreate", "Forget"),
  [RECONCILE_ANNOTATION]: pick("1", "2"),
  [IGNORE_FIELDS_ANNOTATION]: pick("Deployment:spec.replicas", "ConfigMap:data", "Pod:spec", "Namespace:metadata"),
  [ORPHANED_ANNOTATION]: fc.constant(new Date().toISOString()),
  [OWNER_ANNOTATION]: pick("none"),
  [CREATED_ANNOTATION]: pick("true", "false"),
};
const annotation = pick(...Object.keys(ANNOTATIONS)).chain((key) =>
  fc
    .oneof({ weight: 4, arbitrary: ANNOTATIONS[key] as fc.Arbitrary<string | null> }, fc.constant(null))
    .map((value) => ({ [key]: value })),
);

const FINALIZERS = [
  ...[null, [], ["example.com/other"], ["foregroundDeletion"], ["orphan"], [FINALIZER, "orphan"]],
  ...[[`${FINALIZER} `], [FINALIZER.toUpperCase()]],
];
const LABELS = [
  null,
  { [OWNER_UID_LABEL]: "x" },
  { app: "x" },
  { [PAUSED_ANNOTATION]: "false" },
  { [MODE_ANNOTATION]: "Apply" },
];
const OWNERS = [[], [{ apiVersion: "v1", kind: "ConfigMap", name: "none", uid: "none" }]];

const metadata = fc.oneof(
  { weight: 4, arbitrary: fc.record({ annotations: annotation }) },
  { weight: 3, arbitrary: fc.record({ finalizers: pick(...FINALIZERS) }) },
  fc.record({ labels: pick(...LABELS) }),
  fc.record({ ownerReferences: pick(...OWNERS) }),
  fc.record({ annotations: fc.constant(null) }),
);
const status = pick<Record<string, unknown>>(
  ...[{ stack: null }, { stack: { name: "other" } }, { mode: "Apply" }, { conditions: [] }],
  ...[{ observedGeneration: 99 }, { lastHandledReconcile: "1" }, { namespaces: [] }],
);
/** `undefined` for the change of the spec that the object knows. */
const change = fc.oneof(
  { weight: 4, arbitrary: fc.record({ metadata }) },
  { weight: 2, arbitrary: fc.constant(undefined) },
  fc.record({ spec: pick<Record<string, unknown>>({ replicas: 0 }, { size: 1 }, { namespaces: [] }) }),
  fc.record({ status }),
);

const writing: fc.Arbitrary<Gesture> = fc
  .record({ tool: pick(...Object.keys(TOOLS)), to: pick(undefined, undefined, undefined, "/status", "/scale"), change })
  .map(({ tool, to, change }) => (subject) => ({
    ...(TOOLS[tool] as (typeof TOOLS)[string])(subject.live, change ?? { spec: { ...subject.change } }),
    ...(to !== undefined && ({ to } as Pick<Request, "to">)),
  }));

const modeOfNamespace: fc.Arbitrary<Gesture> = (ANNOTATIONS[MODE_ANNOTATION] as fc.Arbitrary<string>).map(
  (mode) => (subject) => ({
    ...(TOOLS.patch as (typeof TOOLS)[string])(subject.live, {
      metadata: { annotations: { [MODE_ANNOTATION]: mode } },
    }),
    to: "the namespace",
  }),
);

const deletion: fc.Arbitrary<Gesture> = fc
  .record({
    propagationPolicy: pick("Foreground", "Background", "Orphan", undefined),
    gracePeriodSeconds: pick(0, undefined),
    all: fc.boolean(),
  })
  .map(({ all, ...options }) => ({ live }) => ({
    method: "DELETE",
    body: { apiVersion: "v1", kind: "DeleteOptions", ...options },
    ...(all && { to: "the collection", query: { fieldSelector: `metadata.name=${live.metadata.name}` } }),
  }));

/** The same object again, elsewhere, or under another name: as it was written, or with all that the operator has added. */
const creation: fc.Arbitrary<Gesture> = fc
  .record({ whole: fc.boolean(), elsewhere: fc.boolean(), suffix: pick("", "", "-2") })
  .map(({ whole, elsewhere, suffix }) => ({ live: { status, ...live } }) => {
    const { uid: _, resourceVersion: __, deletionTimestamp: ___, namespace: ____, name, ...rest } = live.metadata;
    return {
      method: "POST",
      to: elsewhere && live.metadata.namespace !== undefined ? "another namespace" : "the collection",
      body: { ...live, metadata: { ...(whole && rest), name: name + suffix }, ...(whole && { status }) },
    } satisfies Request & { body: Manifest | object };
  });

const gesture = fc.oneof(
  { weight: 4, arbitrary: writing },
  { weight: 3, arbitrary: deletion },
  { weight: 2, arbitrary: creation },
  { weight: 1, arbitrary: modeOfNamespace },
);

/** So many sequences for so many objects, the same ones for the same seed. */
export function sequences(count: number, { objects, seed }: { objects: number; seed: number }): Step[][] {
  const waits = fc.nat(3).map((draw) => draw === 0);
  const step = fc.record({ index: fc.nat(objects - 1), gesture, waits });
  return fc.sample(fc.array(step, { minLength: 60, maxLength: 90 }), { numRuns: count, seed });
}
