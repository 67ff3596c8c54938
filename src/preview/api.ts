import pLimit from "p-limit";
import Type from "typebox";
import { type ResourceAttributes, reviewAccess } from "../../providers/kubernetes/access-review";
import type { KubernetesClient } from "../../providers/kubernetes/client";
import type { AnyKind } from "../../stacks/contract/kind";
import { resourceOf } from "../../stacks/contract/rbac";
import { referencesOf } from "../../stacks/contract/references";
import { neededPluginSchema } from "../automation/needed-plugins";
import { resourceChangeSchema } from "../automation/planned-changes";
import { pluginProcessSchema } from "../automation/plugin-host";
import { declaredSchema, providersSchema } from "../fleet/artefact";
import type { Identity } from "../http/identity";
import { Refusal } from "../http/refusal";
import type { Selection } from "./preview";
import { reportSchema } from "./report";

/*
 * What `kindstack preview --server` and similar commands ask the operator, and its answers: JSON, by path. The two
 * sides may have different versions, so unknown fields are allowed, except in a report, which `--fail-on` evaluates.
 */

const name = Type.String({ minLength: 1, maxLength: 253 });
const namespace = Type.String({ minLength: 1, maxLength: 63 });
const text = Type.String({ maxLength: 4096 });

const manifestsSchema = Type.Object({
  objects: Type.Array(
    Type.Object({
      file: text,
      manifest: Type.Object(
        { apiVersion: Type.String({ minLength: 1 }), kind: Type.String({ minLength: 1 }) },
        { additionalProperties: Type.Unknown() },
      ),
    }),
  ),
  problems: Type.Array(Type.Object({ file: text, message: Type.String() })),
  notes: Type.Optional(Type.Array(Type.String())),
});

/** An object as a person names it. The namespace is ignored for cluster-scoped kinds. */
const objectSchema = Type.Object({ kind: name, name, namespace });

const outputsSchema = Type.Object({
  type: Type.String(),
  name: Type.String(),
  id: Type.String(),
  outputs: Type.Record(Type.String(), Type.Unknown()),
});

const historyEntrySchema = Type.Object({
  version: Type.Optional(Type.Integer()),
  kind: Type.String(),
  message: Type.Optional(
    Type.String({ description: "who approved it, where that was needed; of an update by the CLI, its message" }),
  ),
  startTime: Type.String({ description: "ISO 8601" }),
  endTime: Type.Optional(Type.String()),
  result: Type.String(),
  /** How many resources, by operation; the stack itself counts as one. */
  resourceChanges: Type.Optional(Type.Record(Type.String(), Type.Integer({ minimum: 0 }))),
  /** Which resources; absent for an update by the CLI where the history does not tell. */
  changes: Type.Optional(Type.Array(resourceChangeSchema)),
  /** Those whose change failed, or waits for something else to end. */
  unfinished: Type.Optional(Type.Array(resourceChangeSchema)),
});

const stateSchema = Type.Object({
  version: Type.Integer(),
  deployment: Type.Object({
    resources: Type.Optional(
      Type.Union([Type.Null(), Type.Array(Type.Object({ urn: Type.String(), type: Type.String() }))]),
    ),
  }),
});

export const requestSchemas = {
  "/v1/preview": Type.Object({
    manifests: manifestsSchema,
    /** The manifests of another revision; what is missing from `manifests` is removed. */
    before: Type.Optional(manifestsSchema),
    /** Objects of the cluster that have these labels and are missing from `manifests` are removed. */
    prune: Type.Optional(Type.Object({ selector: Type.String({ minLength: 1 }), namespace: Type.Optional(namespace) })),
    /** For namespaced objects that name none. */
    namespace,
    refresh: Type.Boolean(),
    /** Whether plans have their digests, for approvals. */
    propose: Type.Optional(Type.Boolean()),
  }),
  /** Without a kind: all objects of all kinds. Without a name: all of the kind. */
  "/v1/diff": Type.Object({
    kind: Type.Optional(name),
    name: Type.Optional(name),
    namespace: Type.Optional(namespace),
    refresh: Type.Boolean(),
    propose: Type.Optional(Type.Boolean()),
  }),
  /** What programs that are yet to be rolled out have declared elsewhere for live objects. */
  "/v1/fleet": Type.Object({
    objects: Type.Array(declaredSchema),
    providers: providersSchema,
    /** Kinds of the programs whose objects, if there are any, were not looked for. */
    notFetched: Type.Array(name, { maxItems: 500 }),
    refresh: Type.Boolean(),
    propose: Type.Optional(Type.Boolean()),
  }),
  "/v1/history": objectSchema,
  "/v1/outputs": objectSchema,
  "/v1/state": objectSchema,
  "/v1/plugins": Type.Object({}),
} as const;

export type RequestPath = keyof typeof requestSchemas;

export const answerSchemas = {
  "/v1/preview": reportSchema,
  "/v1/diff": reportSchema,
  "/v1/fleet": reportSchema,
  "/v1/history": Type.Array(historyEntrySchema),
  "/v1/outputs": Type.Array(outputsSchema),
  "/v1/state": stateSchema,
  "/v1/plugins": Type.Object({
    kinds: Type.Array(Type.Object({ kind: Type.String(), plugins: Type.Array(neededPluginSchema) })),
    /** Of the operator that was asked. */
    processes: Type.Optional(Type.Array(pluginProcessSchema)),
  }),
} as const satisfies Record<RequestPath, Type.TSchema>;

export type Requests = { [P in RequestPath]: Type.Static<(typeof requestSchemas)[P]> };
export type Answers = { [P in RequestPath]: Type.Static<(typeof answerSchemas)[P]> };
export type ObjectRequest = Type.Static<typeof objectSchema>;

/** Larger bodies and more objects are refused: each object takes about a second. */
export const MAX_REQUEST_BYTES = 4 * 1024 * 1024;
export const MAX_REQUEST_OBJECTS = 500;
/** Of all objects of a request with declarations: each is looked for in the cluster. */
export const MAX_REQUEST_RESOURCES = 5_000;

/** One right, as a SubjectAccessReview asks for it, in all versions of the API. */
export type NeededRight = Omit<ResourceAttributes, "version">;

const GROUP = "kindstack.dev";
/** SubjectAccessReviews for one request at the same time. */
const CONCURRENT_REVIEWS = 8;

/**
 * What a caller needs for a preview: `create` on `previews.kindstack.dev` where the objects are, and `get` on each object,
 * since a preview shows what it is now.
 */
export async function rightsForPreview(selection: Selection, kinds: readonly AnyKind[]): Promise<NeededRight[]> {
  return unique(
    selection.candidates.flatMap(({ kind, manifest: { metadata } }) =>
      rightsToPreview("get", kind, metadata.namespace, metadata.name),
    ),
  ).concat(await rightsToRead(selection, kinds));
}

/** `get` on all targets of references: a preview shows resources that programs derive from them. */
export async function rightsToRead({ candidates }: Selection, kinds: readonly AnyKind[]): Promise<NeededRight[]> {
  const kept = candidates.filter(({ removed }) => !removed);
  const references = await Promise.all(kept.map(({ kind, manifest }) => referencesOf(kind, manifest)));
  return unique(
    references.flat().map(([reference, { metadata }]) => {
      const { apiGroups, resources } = resourceOf(reference, kinds);
      return { verb: "get", group: apiGroups[0] ?? "", resource: resources[0] ?? "", ...metadata };
    }),
  );
}

/** The same for objects of the cluster; a request that names no object needs `list`. */
export function rightsForDiff(
  kinds: readonly AnyKind[],
  { name, namespace }: { name?: string; namespace?: string },
): NeededRight[] {
  return unique(kinds.flatMap((kind) => rightsToPreview(name === undefined ? "list" : "get", kind, namespace, name)));
}

/**
 * For a preview of many live objects, whose names would take a review each: the same in whole namespaces.
 *
 * @param definitions names of CRDs; the answer says which of these exist
 */
export function rightsForFleet({ candidates }: Selection, definitions: readonly string[]): NeededRight[] {
  const [group, resource] = ["apiextensions.k8s.io", "customresourcedefinitions"];
  return unique([
    ...candidates.flatMap(({ kind, manifest }) => rightsToPreview("get", kind, manifest.metadata.namespace)),
    ...definitions.map((name) => ({ verb: "get", group, resource, name })),
  ]);
}

/** For the stack of one object: `get` on `previews` (its history, what it made) or on `states`, and on the object. */
export function rightsForStack(
  resource: "previews" | "states",
  kind: AnyKind,
  namespace: string | undefined,
  name: string,
): NeededRight[] {
  return [stackRight("get", resource, kind, namespace), objectRight("get", kind, namespace, name)];
}

/** To see the processes of plugins and where their files are, which concerns no object: in all namespaces. */
export const rightForPlugins: NeededRight = { verb: "list", group: GROUP, resource: "plugins" };

/** @throws Refusal 403 naming the first right that the caller does not have */
export async function requireRights(
  client: Pick<KubernetesClient, "json">,
  user: Identity,
  rights: readonly NeededRight[],
): Promise<void> {
  const limit = pLimit(CONCURRENT_REVIEWS);
  await limit.map(rights, async (right) => {
    if (await reviewAccess(client, user, { resourceAttributes: { version: "*", ...right } })) return;
    limit.clearQueue();
    throw new Refusal(403, "Forbidden", `${user.username} may not ${describe(right)}`);
  });
}

function describe({ verb, group, resource, namespace, name }: NeededRight): string {
  return `${verb} ${resource}.${group}${name === undefined ? "" : ` ${name}`}${
    namespace === undefined ? " in all namespaces" : ` in the namespace ${namespace}`
  }`;
}

function rightsToPreview(verb: string, kind: AnyKind, namespace?: string, name?: string): NeededRight[] {
  return [stackRight("create", "previews", kind, namespace), objectRight(verb, kind, namespace, name)];
}

function stackRight(verb: string, resource: "previews" | "states", kind: AnyKind, namespace?: string): NeededRight {
  return { verb, group: GROUP, resource, ...inNamespace(kind, namespace) };
}

function objectRight(verb: string, kind: AnyKind, namespace?: string, name?: string): NeededRight {
  return { verb, group: kind.group, resource: kind.plural, ...inNamespace(kind, namespace), ...(name && { name }) };
}

function inNamespace({ scope }: AnyKind, namespace: string | undefined): { namespace?: string } {
  return scope === "Namespaced" && namespace !== undefined ? { namespace } : {};
}

function unique(rights: readonly NeededRight[]): NeededRight[] {
  return [...new Map(rights.map((right) => [JSON.stringify(right), right])).values()];
}
