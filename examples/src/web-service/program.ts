import type { KindObject, ProgramContext } from "kindstack";
import { KubernetesObject } from "kindstack/providers/kubernetes";
import type { WebServiceSpec } from "./schema";

/** What its Pods have in common. */
export const labelsOf = (name: string) => ({ "app.kubernetes.io/name": name });

/** A Deployment with a Service and a PodDisruptionBudget; with a host an Ingress, with bounds an autoscaler. */
export function webServiceProgram(
  { apiVersion, kind, metadata, spec }: KindObject<WebServiceSpec>,
  { owner }: ProgramContext,
): void {
  const { name, namespace = "" } = metadata;
  const { container, host, replicas, autoscaling } = spec;
  const labels = labelsOf(name);
  const named = { name, namespace };

  const deployment = new KubernetesObject(`deployment/${name}`, {
    owner,
    manifest: {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: named,
      spec: {
        replicas,
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: {
            containers: [
              {
                name: "web",
                image: container.image,
                ports: [{ name: "http", containerPort: container.port }],
                resources: { requests: { cpu: "50m", memory: "64Mi" } },
              },
            ],
          },
        },
      },
    },
  });
  new KubernetesObject(`service/${name}`, {
    owner,
    manifest: {
      apiVersion: "v1",
      kind: "Service",
      metadata: named,
      spec: { selector: labels, ports: [{ name: "http", port: 80, targetPort: "http" }] },
    },
  });
  new KubernetesObject(`disruption-budget/${name}`, {
    owner,
    manifest: {
      apiVersion: "policy/v1",
      kind: "PodDisruptionBudget",
      metadata: named,
      spec: { maxUnavailable: 1, selector: { matchLabels: labels } },
    },
  });
  if (host !== undefined) {
    const backend = { service: { name, port: { name: "http" } } };
    new KubernetesObject(`ingress/${name}`, {
      owner,
      manifest: {
        apiVersion: "networking.k8s.io/v1",
        kind: "Ingress",
        metadata: named,
        spec: { rules: [{ host, http: { paths: [{ path: "/", pathType: "Prefix", backend }] } }] },
      },
    });
  }
  if (autoscaling !== undefined) {
    // It scales this object, not the Deployment: the number of replicas has one owner, and is seen in the spec.
    new KubernetesObject(
      `autoscaler/${name}`,
      {
        owner,
        manifest: {
          apiVersion: "autoscaling/v2",
          kind: "HorizontalPodAutoscaler",
          metadata: named,
          spec: { scaleTargetRef: { apiVersion, kind, name }, ...autoscaling },
        },
      },
      { dependsOn: deployment },
    );
  }
}
