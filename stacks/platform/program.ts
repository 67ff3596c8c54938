import * as sdk from "@pulumi/kubernetes";
import { ComponentResource, type CustomResourceOptions, type Resource } from "@pulumi/pulumi/resource";
import type { Manifest } from "../../providers/kubernetes/client";
import type { AnyKind } from "../contract/kind";
import { objectKey } from "../contract/object";
import type { Configuration } from "./configuration";
import { isModePolicy, platformManifests } from "./manifests";

/** Whether `destroy`, or a configuration without it, leaves an object in the cluster; a protected one would stop `destroy`. */
function outlivesStack({ kind, metadata }: Manifest, { keepState, stateSecret }: Configuration): boolean {
  // Deleting a CRD deletes all objects of its kind, while no operator is left to destroy their resources.
  if (kind === "CustomResourceDefinition" || isModePolicy({ kind, metadata })) return true;
  // Deleting the namespace deletes the volume and the Secrets, also those of others.
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
  return new (classOf(manifest))(`${manifest.kind}/${objectKey(manifest.metadata)}`, manifest as never, options);
}

type ResourceClass = new (name: string, args: never, options: CustomResourceOptions) => Resource;

/** The SDK's class of a type; that of Secrets has the state hold their contents encrypted. */
function classOf({ apiVersion, kind }: Manifest): ResourceClass {
  const [version = "", group = "core"] = apiVersion.split("/").reverse();
  const groups = sdk as unknown as Record<string, Record<string, Record<string, ResourceClass>>>;
  return groups[group.split(".", 1)[0] ?? ""]?.[version]?.[kind] ?? sdk.apiextensions.CustomResource;
}
