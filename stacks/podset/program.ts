import { randomInt } from "node:crypto";
import { KubernetesObject } from "../../providers/kubernetes/index";
import { controllerReference, type KindObject, objectId, type ProgramContext } from "../contract/index";
import { podsToKeep } from "./pods";
import type { PodSetSpec } from "./schema";

/** As many Pods as there are to be: those that are to stay, and new ones for what is missing. */
export function podSetProgram(object: KindObject<PodSetSpec>, { owner, owned, recorded }: ProgramContext): void {
  const { name, namespace = "" } = object.metadata;
  const kept = podsToKeep(owned, object.spec.replicas, (pod) => recorded.has(objectId(pod)));
  const names = kept.map((pod) => pod.metadata.name);
  const taken = new Set(owned.map((pod) => pod.metadata.name));
  while (names.length < object.spec.replicas) {
    const generated = generateName(`${name}-pod-`);
    if (taken.has(generated)) continue;
    taken.add(generated);
    names.push(generated);
  }
  for (const podName of names) {
    new KubernetesObject(`pod/${podName}`, {
      owner,
      adopt: false,
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

/** What the API server leaves out of generated names, so that they spell nothing. */
const ALPHABET = "bcdfghjklmnpqrstvwxz2456789";
/** The longest name that the API server makes of `generateName` keeps 58 bytes of it. */
const MAX_PREFIX = 58;

/**
 * A name as the API server generates them, but made here: a Pod that is named before it exists can be applied again
 * after a crash and is still the same Pod, where a second `generateName` would be a second Pod.
 */
function generateName(prefix: string): string {
  const suffix = Array.from({ length: 5 }, () => ALPHABET[randomInt(ALPHABET.length)]).join("");
  return prefix.slice(0, MAX_PREFIX) + suffix;
}
