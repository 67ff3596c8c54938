import { hash } from "node:crypto";
import { KubernetesObject } from "../../../providers/kubernetes/index";
import {
  controllerReference,
  generateName,
  type KindObject,
  objectId,
  type ProgramContext,
} from "../../contract/index";
import { podsToKeep } from "./pods";
import type { PodSetSpec } from "./schema";

/** The Pods of a PodSet: the live Pods that stay, and new Pods for the missing ones. */
export function podSetProgram(object: KindObject<PodSetSpec>, { owner, owned, recorded }: ProgramContext): void {
  const { name, namespace = "" } = object.metadata;
  const kept = podsToKeep(owned, object.spec.replicas, (pod) => recorded.has(objectId(pod)));
  const names = kept.map((pod) => pod.metadata.name);
  const taken = new Set(owned.map((pod) => pod.metadata.name));
  // The same for the same Pods, so that what a preview tells can be approved; none that was there comes back.
  const seed = [object.metadata.uid, ...[...recorded, ...taken].sort()].join();
  for (let count = 0; names.length < object.spec.replicas; count++) {
    // A Pod that is named before it exists can be applied again after a crash and is still the same Pod.
    const generated = generateName(`${name}-pod-`, hash("sha256", `${seed} ${count}`, "buffer"));
    if (taken.has(generated)) continue;
    taken.add(generated);
    names.push(generated);
  }
  for (const podName of names) {
    new KubernetesObject(`pod/${podName}`, {
      owner,
      adopt: false,
      replaceOnChanges: ["spec"],
      awaitDeletion: false, // what is being deleted does not count any more, and may take its grace period
      manifest: {
        apiVersion: "v1",
        kind: "Pod",
        metadata: {
          name: podName,
          generateName: `${name}-pod-`,
          namespace,
          labels: { app: name, version: "v0.1" },
          ownerReferences: [controllerReference(object)],
        },
        spec: { containers: [{ name: "busybox", image: "busybox", command: ["sleep", "3600"] }] },
      },
    });
  }
}
