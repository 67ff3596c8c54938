import type { LiveObject } from "../../providers/kubernetes/client";
import { isObjectOutputs } from "../../providers/kubernetes/object";
import type { StackState } from "../automation/stack-state";

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
  const owners = (state?.deployment.resources ?? []).map(
    ({ outputs }) => outputs?.owner as { uid?: string } | undefined,
  );
  return owners.find((owner) => owner?.uid !== undefined)?.uid;
}
