import Type from "typebox";
import { manifestSchema } from "../../stacks/contract/manifests";

/*
 * What `kindstack preview --server` and its like ask the operator: a JSON body for each path.
 */

const name = Type.String({ minLength: 1, maxLength: 253 });
const namespace = Type.String({ minLength: 1, maxLength: 63 });
const text = Type.String({ maxLength: 4096 });

const manifestsSchema = Type.Object({
  objects: Type.Array(Type.Object({ file: text, manifest: manifestSchema })),
  problems: Type.Array(Type.Object({ file: text, message: Type.String() })),
});

/** An object, by the words that a person uses for it. The namespace does not count for one of a cluster-wide kind. */
const objectSchema = Type.Object({ kind: name, name, namespace });

/** The body of each request, by its path. */
export const requestSchemas = {
  "/v1/preview": Type.Object({
    manifests: manifestsSchema,
    /** What they were in another revision: what is missing since is removed. */
    before: Type.Optional(manifestsSchema),
    /** For namespaced objects that name none. */
    namespace,
    refresh: Type.Boolean(),
  }),
  /** Without a kind: all objects of all kinds. Without a name: all of the kind. */
  "/v1/diff": Type.Object({
    kind: Type.Optional(name),
    name: Type.Optional(name),
    namespace: Type.Optional(namespace),
    refresh: Type.Boolean(),
  }),
  "/v1/history": objectSchema,
  "/v1/outputs": objectSchema,
  "/v1/state": objectSchema,
} as const;

export type RequestPath = keyof typeof requestSchemas;
export type PreviewRequest = Type.Static<(typeof requestSchemas)["/v1/preview"]>;
export type DiffRequest = Type.Static<(typeof requestSchemas)["/v1/diff"]>;
export type ObjectRequest = Type.Static<typeof objectSchema>;

/** A larger body is refused, and so are more objects: each takes a second or so. */
export const MAX_REQUEST_BYTES = 4 * 1024 * 1024;
export const MAX_REQUEST_OBJECTS = 500;
