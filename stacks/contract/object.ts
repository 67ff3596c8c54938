import { hash } from "node:crypto";
import Type from "typebox";
import type { LiveObject, OwnerReference } from "../../providers/kubernetes/client";
import type { Condition } from "./condition";
import type { Mode } from "./mode";

/** What every kind's status holds besides the kind's own fields. */
export interface CommonStatus {
  observedGeneration?: number;
  conditions?: Condition[];
  stack?: StackRecord;
  /** The value of the annotation `kindstack.dev/reconcile` that was acted on last. */
  lastHandledReconcile?: string;
  /** The mode that holds for the object; absent for `Apply`. */
  mode?: Mode;
}

/** On every object from before its first update until its stack is destroyed. */
export const FINALIZER = "kindstack.dev/stack";

const approvalRecordSchema = Type.Object(
  {
    approver: Type.String(),
    digest: Type.String({ description: "Of the plan." }),
    reason: Type.Optional(Type.String()),
    at: Type.String({ format: "date-time" }),
  },
  { description: "Who approved the last update, where it needed that." },
);
/** An approval that was acted on. */
export type ApprovalRecord = Type.Static<typeof approvalRecordSchema>;

/**
 * What the last successful update left behind; enough to tell after a restart that nothing has to be done. Its resources are also those
 * of a later update that has failed on the way.
 */
export const stackRecordSchema = Type.Object(
  {
    name: Type.String({ description: "The Pulumi stack that stands behind this object." }),
    program: Type.String({ description: "Digest of the code of the program whose declarations are applied." }),
    declarations: Type.Optional(
      Type.String({ description: "Keyed digest of what the program declared at the last update." }),
    ),
    ignoreFields: Type.Optional(
      Type.Array(Type.String(), { description: "The fields that the object left to others at its last update." }),
    ),
    approval: Type.Optional(approvalRecordSchema),
    metadata: Type.Optional(
      Type.String({ description: "Digest of the labels and annotations that the program read." }),
    ),
    references: Type.Optional(
      Type.Array(
        Type.Object({
          id: Type.String({ description: "apiVersion/kind/namespace/name of an object that the object refers to." }),
          version: Type.Optional(
            Type.String({ description: "The resource version that was read; absent where there was none." }),
          ),
        }),
        { "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"] },
      ),
    ),
    // The Kubernetes objects in the stack that are watched for drift, by {@link objectId}; absent when there are none.
    resources: Type.Optional(
      Type.Array(
        Type.Object({
          id: Type.String({ description: "apiVersion/kind/namespace/name of an object that the stack made." }),
          fields: Type.String({ description: "Digest of the fields that Kindstack owns in it, and of their values." }),
          ignored: Type.Optional(Type.Array(Type.String(), { description: "Fields that are left to others." })),
        }),
        { "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"] },
      ),
    ),
  },
  { description: "What the last successful update left behind." },
);
export type StackRecord = Type.Static<typeof stackRecordSchema>;
/** What an object referred to at its last update. */
export type ReferenceRecord = NonNullable<StackRecord["references"]>[number];
/** One watched object, and the digest of the fields that Kindstack owned after its last apply. */
export type OwnedRecord = NonNullable<StackRecord["resources"]>[number];

/** An object of a kind, after parsing: its spec has the schema's shape. */
export interface KindObject<Spec = unknown, Status = unknown> {
  apiVersion: string;
  kind: string;
  metadata: LiveObject["metadata"] & { generation: number };
  spec: Spec;
  status?: Partial<Status> & CommonStatus;
}

/** Names one Kubernetes object of any type: `v1/Namespace//acme`, `rbac.authorization.k8s.io/v1/RoleBinding/acme/edit`. */
export function objectId(object: {
  apiVersion: string;
  kind: string;
  metadata: { name?: string; namespace?: string };
}): string {
  return `${object.apiVersion}/${object.kind}/${object.metadata.namespace ?? ""}/${object.metadata.name ?? ""}`;
}

/** The parts of an {@link objectId}. */
export function parseObjectId(id: string): { apiVersion: string; kind: string; namespace: string; name: string } {
  const parts = id.split("/");
  const [kind = "", namespace = "", name = ""] = parts.splice(-3);
  return { apiVersion: parts.join("/"), kind, namespace, name };
}

/** `namespace/name`, or `name` for what has no namespace: the usual key of controllers. */
export function objectKey(metadata: { name?: string; namespace?: string }): string {
  return metadata.namespace ? `${metadata.namespace}/${metadata.name}` : (metadata.name ?? "");
}

/**
 * A controller's owner reference to an object. Pods need one. No other resource is given it: with a deletion in the foreground, the
 * garbage collector would delete what a stack made, whatever the mode and the annotations of the object.
 */
export function controllerReference(object: Pick<LiveObject, "apiVersion" | "kind" | "metadata">): OwnerReference {
  return {
    apiVersion: object.apiVersion,
    kind: object.kind,
    name: object.metadata.name,
    uid: object.metadata.uid,
    controller: true,
    blockOwnerDeletion: true,
  };
}

/**
 * The name of an object's stack: readable, at most 100 characters that Pulumi allows, and unique by a digest that is too long
 * for anyone to find two names with the same.
 *
 * It is made of the name and not of the UID: the operator and `pulumi up` derive the same stack, and an object that is
 * created again after its finalizer was removed by force takes over what it left behind.
 */
export function stackName(kind: { group: string; plural: string; singular: string }, key: string): string {
  const digest = hash("sha256", `${kind.plural}.${kind.group}/${key}`).slice(0, 19);
  const readable = `${kind.singular}.${key.replace("/", ".")}`.replace(/[^a-zA-Z0-9._-]/g, "-").slice(0, 80);
  return `${readable}-${digest}`;
}
