import { setTimeout as delay } from "node:timers/promises";
import { RetryableError } from "../../providers/errors";
import type { KubernetesClient, ResourceType } from "../../providers/kubernetes/client";
import { customResourceDefinition } from "../../stacks/contract/crd";
import { type AnyKind, kindName } from "../../stacks/contract/kind";

const CRD: ResourceType = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  plural: "customresourcedefinitions",
  namespaced: false,
};
const ESTABLISHED_TIMEOUT_MS = 30_000;

/** Applies the CRDs of all kinds and waits until the API server serves them. */
export async function installKinds(client: KubernetesClient, kinds: readonly AnyKind[]): Promise<void> {
  await Promise.all(kinds.map((kind) => client.apply(CRD, customResourceDefinition(kind))));
  for (const kind of kinds) await untilEstablished(client, kindName(kind));
}

async function untilEstablished(client: KubernetesClient, name: string): Promise<void> {
  const deadline = performance.now() + ESTABLISHED_TIMEOUT_MS;
  while (performance.now() < deadline) {
    const crd = await client.get(CRD, name);
    // A CRD that was made just now has `conditions: null`.
    const { conditions } = (crd?.status ?? {}) as { conditions?: { type: string; status: string }[] | null };
    if (conditions?.some(({ type, status }) => type === "Established" && status === "True")) return;
    await delay(50);
  }
  throw new RetryableError(
    "NotEstablished",
    `the API server does not serve ${name} after ${ESTABLISHED_TIMEOUT_MS} ms`,
  );
}
