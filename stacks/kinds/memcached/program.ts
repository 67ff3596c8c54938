import type { input } from "@pulumi/kubernetes/types";
import type { Output } from "@pulumi/pulumi/output";
import { KubernetesObject } from "../../../providers/kubernetes/index";
import type { KindObject, ProgramContext } from "../../contract/index";
import type { MemcachedSpec } from "./schema";

export const DEFAULT_IMAGE = "memcached:1.4.36-alpine";

/** The image of all instances; the operator's environment may name another. */
export function memcachedImage(): string {
  return process.env.MEMCACHED_IMAGE || DEFAULT_IMAGE;
}

/** A Deployment that passes the restricted Pod security standard. */
export async function memcachedProgram(object: KindObject<MemcachedSpec>, { owner }: ProgramContext): Promise<void> {
  const { name, namespace = "" } = object.metadata;
  const labels = {
    "app.kubernetes.io/name": "Memcached",
    "app.kubernetes.io/instance": name,
    "app.kubernetes.io/part-of": "memcached-operator",
    "app.kubernetes.io/created-by": "controller-manager",
  };
  new KubernetesObject(`deployment/${name}`, {
    owner,
    replaceOnChanges: ["spec.selector"],
    manifest: {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name, namespace },
      spec: {
        replicas: object.spec.size,
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: await podSpec(object.spec) },
      },
    },
  });
}

/**
 * The specification of one instance, by the PodBuilder: it knows how ports and the like are written out.
 *
 * Of what it makes only the Pod's specification is used. Its `asDeploymentSpec` selects by the container's name alone,
 * so that two Memcacheds of a namespace would take each other's Pods.
 */
async function podSpec({ containerPort }: MemcachedSpec): Promise<Output<input.core.v1.PodSpec>> {
  // Loaded when the first Memcached comes: it brings all of Pulumi's SDK along, 56 MiB of resident memory.
  const { PodBuilder } = await import("@pulumi/kubernetesx");
  const pod = new PodBuilder({
    securityContext: { runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } },
    containers: [
      {
        name: "memcached",
        image: memcachedImage(),
        imagePullPolicy: "IfNotPresent",
        command: ["memcached", "-m=64", "-o", "modern", "-v", "-p", String(containerPort)],
        ports: { memcached: containerPort },
        securityContext: {
          runAsNonRoot: true,
          runAsUser: 1001,
          allowPrivilegeEscalation: false,
          capabilities: { drop: ["ALL"] },
        },
      },
    ],
  });
  return pod.podSpec as Output<input.core.v1.PodSpec>;
}
