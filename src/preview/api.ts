import Type from "typebox";
import { neededPluginSchema } from "../automation/needed-plugins";
import { pluginProcessSchema } from "../automation/plugin-host";
import { resourceChangeSchema } from "../automation/update-changes";
import { declaredSchema, providersSchema } from "../fleet/artefact";
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
  message: Type.Optional(Type.String({ description: "who approved it, where that was needed" })),
  startTime: Type.String({ description: "ISO 8601" }),
  endTime: Type.Optional(Type.String()),
  result: Type.String(),
  /** How many resources, by operation; the stack itself counts as one. */
  resourceChanges: Type.Optional(Type.Record(Type.String(), Type.Integer({ minimum: 0 }))),
  /** Which resources; absent for updates by the CLI. */
  changes: Type.Optional(Type.Array(resourceChangeSchema)),
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
    /** Whether the kinds are yet to be rolled out; an operator has others. */
    fleet: Type.Optional(Type.Boolean()),
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
