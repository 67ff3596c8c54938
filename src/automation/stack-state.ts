import type { Deployment } from "@pulumi/pulumi/automation/workspace";
import Type from "typebox";
import type { LiveObject } from "../../providers/kubernetes/client";
import { isObjectOutputs } from "../../providers/kubernetes/object";
import type { Properties } from "../../providers/provider";

export interface RecordedResource {
  urn: string;
  type: string;
  id?: string;
  parent?: string;
  dependencies?: string[];
  outputs?: Properties;
  protect?: boolean;
}

/** A stack's state, secrets encrypted, in the form that `pulumi stack import` takes. */
export interface StackState extends Deployment {
  deployment: {
    resources?: RecordedResource[] | null;
    [field: string]: unknown;
  };
}

export const stackStateSchema = Type.Unsafe<StackState>({ type: "object", required: ["version", "deployment"] });

/** The URNs in a state, parents first. */
export function urnsIn({ deployment }: StackState): string[] {
  return (deployment.resources ?? []).map(({ urn }) => urn);
}

/** The Kubernetes objects in a state, as far as a state knows them. */
export function recordedObjects(state: StackState | undefined): LiveObject[] {
  return (state?.deployment.resources ?? []).flatMap(({ outputs = {} }) => {
    if (!isObjectOutputs(outputs)) return [];
    const { manifest, uid, resourceVersion } = outputs;
    return [{ ...manifest, metadata: { ...manifest.metadata, uid, resourceVersion } as LiveObject["metadata"] }];
  });
}

/** The UID of the object that a state was made for. */
export function recordedOwner(state: StackState | undefined): string | undefined {
  const resources = state?.deployment.resources ?? [];
  const owners = resources.map(({ outputs }) => outputs?.owner as { uid?: string } | undefined);
  return owners.find((owner) => owner?.uid !== undefined)?.uid;
}
