import { apiextensions, apps, core, networking, policy, rbac } from "@pulumi/kubernetes";
import { ComponentResource, type CustomResourceOptions, type Resource } from "@pulumi/pulumi/resource";
import type { Manifest } from "../../providers/kubernetes/client";
import type { AnyKind } from "../contract/kind";
import { objectKey } from "../contract/object";
import type { Configuration } from "./configuration";
import { platformManifests } from "./manifests";

type ResourceClass = new (name: string, args: never, options: CustomResourceOptions) => Resource;

/** The SDK's class of each type that is installed. */
const CLASSES: Readonly<Record<string, ResourceClass>> = {
  "v1/Namespace": core.v1.Namespace,
  "v1/ServiceAccount": core.v1.ServiceAccount,
  "v1/Secret": core.v1.Secret, // it marks its contents as secret, so that the state holds them encrypted
  "v1/PersistentVolumeClaim": core.v1.PersistentVolumeClaim,
  "v1/Service": core.v1.Service,
  "v1/ConfigMap": core.v1.ConfigMap,
  "apiextensions.k8s.io/v1/CustomResourceDefinition": apiextensions.v1.CustomResourceDefinition,
  "rbac.authorization.k8s.io/v1/ClusterRole": rbac.v1.ClusterRole,
  "rbac.authorization.k8s.io/v1/ClusterRoleBinding": rbac.v1.ClusterRoleBinding,
  "rbac.authorization.k8s.io/v1/Role": rbac.v1.Role,
  "rbac.authorization.k8s.io/v1/RoleBinding": rbac.v1.RoleBinding,
  "apps/v1/Deployment": apps.v1.Deployment,
  "policy/v1/PodDisruptionBudget": policy.v1.PodDisruptionBudget,
  "networking.k8s.io/v1/NetworkPolicy": networking.v1.NetworkPolicy,
  "monitoring.coreos.com/v1/ServiceMonitor": apiextensions.CustomResource,
  "monitoring.coreos.com/v1/PrometheusRule": apiextensions.CustomResource,
};

/**
 * Whether `destroy`, or a configuration without it, leaves an object in the cluster. Unlike a protected one, that lets
 * everything else be deleted.
 */
function outlivesStack({ kind, metadata }: Manifest, { keepState, stateSecret }: Configuration): boolean {
  // With a CRD go all objects of its kind, while no operator is left to destroy what they made.
  if (kind === "CustomResourceDefinition") return true;
  // With the namespace go the volume and the Secrets, also those that others have put there.
  const holdsState = kind === "Namespace" || kind === "PersistentVolumeClaim";
  return keepState && (holdsState || (kind === "Secret" && metadata.name === stateSecret));
}

/**
 * Installs Kindstack into the cluster of the Kubernetes provider, as the resources of one component: each after the
 * namespace, and the Deployment after all that it needs.
 */
export async function installPlatform(configuration: Configuration, kinds: readonly AnyKind[]): Promise<void> {
  const parent = new ComponentResource("kindstack:platform:Platform", "platform");
  const registered: Resource[] = [];
  for (const manifest of (await platformManifests(configuration, kinds)).map(withoutClaimAwait)) {
    const dependsOn = manifest.kind === "Deployment" ? [...registered] : registered.slice(0, 1);
    registered.push(register(manifest, { parent, dependsOn, retainOnDelete: outlivesStack(manifest, configuration) }));
  }
}

/**
 * The `kubernetes` provider waits until a new claim of a class with `WaitForFirstConsumer` is Pending. A claim that an earlier
 * `destroy` has left is Bound, so adopting it would wait for five minutes and fail. The Deployment's own await covers the claim.
 */
function withoutClaimAwait(manifest: Manifest): Manifest {
  if (manifest.kind !== "PersistentVolumeClaim") return manifest;
  const annotations = { ...manifest.metadata.annotations, "pulumi.com/skipAwait": "true" };
  return { ...manifest, metadata: { ...manifest.metadata, annotations } };
}

function register(manifest: Manifest, options: CustomResourceOptions): Resource {
  const resourceClass = CLASSES[`${manifest.apiVersion}/${manifest.kind}`];
  if (resourceClass === undefined) throw new TypeError(`no class is known for ${manifest.apiVersion} ${manifest.kind}`);
  return new resourceClass(`${manifest.kind}/${objectKey(manifest.metadata)}`, manifest as never, options);
}
