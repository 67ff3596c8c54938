import { setTimeout as delay } from "node:timers/promises";
import { RetryableError } from "../../providers/errors";
import { type KubernetesClient, type ResourceType, undefinedWhenNotFound } from "../../providers/kubernetes/client";
import { customResourceDefinition } from "../../stacks/contract/crd";
import { holdPolicy } from "../../stacks/contract/hold";
import { type AnyKind, kindName } from "../../stacks/contract/kind";

const CRD: ResourceType = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  plural: "customresourcedefinitions",
  namespaced: false,
};
const ESTABLISHED_TIMEOUT_MS = 30_000;

/** Applies the CRDs of all kinds, waits until the API server serves them, and has it put the finalizer on new objects. */
export async function installKinds(client: KubernetesClient, kinds: readonly AnyKind[]): Promise<void> {
  await Promise.all(kinds.map((kind) => client.apply(CRD, customResourceDefinition(kind))));
  for (const kind of kinds) await untilEstablished(client, kindName(kind));
  await holdAtCreation(client, kinds);
}

/** Does nothing where the API server has no such policies yet: the operator then puts the finalizer on itself. */
async function holdAtCreation(client: KubernetesClient, kinds: readonly AnyKind[]): Promise<void> {
  for (const policy of kinds.flatMap(holdPolicy)) {
    const type = await client.resourceType(policy.apiVersion, policy.kind).catch(undefinedWhenNotFound);
    if (type !== undefined) await client.apply(type, policy);
  }
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
