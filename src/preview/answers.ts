import Type from "typebox";
import { reportSchema } from "./report";
import type { RequestPath } from "./requests";

/*
 * What the operator answers to `kindstack preview --server` and its like, for each path. Both sides may be of different
 * versions, so fields that a reader does not know are allowed, except in a report, which a gate goes by.
 */

const count = Type.Integer({ minimum: 0 });
const properties = Type.Record(Type.String(), Type.Unknown());

const updateSchema = Type.Object({
  version: Type.Optional(Type.Integer()),
  kind: Type.String(),
  startTime: Type.String({ description: "ISO 8601" }),
  endTime: Type.Optional(Type.String()),
  result: Type.String(),
  resourceChanges: Type.Optional(Type.Record(Type.String(), count)),
  changes: Type.Optional(
    Type.Array(
      Type.Object({
        operation: Type.Enum(["create", "update", "replace", "delete"]),
        type: Type.String(),
        name: Type.String(),
      }),
    ),
  ),
});

const outputsSchema = Type.Object({
  type: Type.String(),
  name: Type.String(),
  id: Type.String(),
  outputs: properties,
});

const stateSchema = Type.Object({
  version: Type.Integer(),
  deployment: Type.Object({
    resources: Type.Optional(
      Type.Union([Type.Null(), Type.Array(Type.Object({ urn: Type.String(), type: Type.String() }))]),
    ),
  }),
});

/** The answer to each request, by its path. */
export const answerSchemas = {
  "/v1/preview": reportSchema,
  "/v1/diff": reportSchema,
  "/v1/history": Type.Array(updateSchema),
  "/v1/outputs": Type.Array(outputsSchema),
  "/v1/state": stateSchema,
} as const satisfies Record<RequestPath, Type.TSchema>;

/** The type of each answer, by the request's path. */
export type Answers = { [P in RequestPath]: Type.Static<(typeof answerSchemas)[P]> };
/** One update of a stack. */
export type StackUpdate = Type.Static<typeof updateSchema>;
/** One resource that an object made, as its stack's state has it. */
export type ResourceOutputs = Type.Static<typeof outputsSchema>;
