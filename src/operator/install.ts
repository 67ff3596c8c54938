import { setTimeout as delay } from "node:timers/promises";
import { RetryableError } from "../../providers/errors";
import { ApiError, type KubernetesClient, type ResourceType } from "../../providers/kubernetes/client";
import { customResourceDefinition } from "../../stacks/contract/crd";
import { type AnyKind, kindApiVersion, kindName } from "../../stacks/contract/kind";

const CRD: ResourceType = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  plural: "customresourcedefinitions",
  namespaced: false,
};
const SERVED_TIMEOUT_MS = 30_000;

/** Applies the CRDs of all kinds and waits until the API server serves them. */
export async function installKinds(
  client: Pick<KubernetesClient, "apply" | "resourceType">,
  kinds: readonly AnyKind[],
): Promise<void> {
  await Promise.all(kinds.map((kind) => client.apply(CRD, customResourceDefinition(kind))));
  for (const kind of kinds) await untilServed(client, kind);
}

/** A CRD is said to be established a moment before discovery has its kind; until then its objects are `404`. */
async function untilServed(client: Pick<KubernetesClient, "resourceType">, kind: AnyKind): Promise<void> {
  const deadline = performance.now() + SERVED_TIMEOUT_MS;
  while (performance.now() < deadline) {
    try {
      await client.resourceType(kindApiVersion(kind), kind.kind);
      return;
    } catch (error) {
      if (!(error instanceof ApiError && error.notFound)) throw error;
    }
    await delay(50);
  }
  throw new RetryableError(
    "NotServed",
    `the API server does not serve ${kindName(kind)} ${SERVED_TIMEOUT_MS / 1000} s after its CRD was applied`,
  );
}
