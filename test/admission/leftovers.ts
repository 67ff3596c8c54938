import type { KubernetesClient } from "../../providers/kubernetes/client";
import { ADMISSION_LABEL } from "../../stacks/contract/admission";

const TYPES = [
  ["admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"],
  ["admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"],
  ["admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding"],
  ["admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"],
  ["rbac.authorization.k8s.io/v1", "ClusterRoleBinding"],
  ["rbac.authorization.k8s.io/v1", "ClusterRole"],
] as const;

/** Deletes what an operator that served admission left in the cluster, where it would bind other tests as well. */
export async function removeAdmission(client: KubernetesClient): Promise<void> {
  for (const [apiVersion, kind] of TYPES) {
    const type = await client.resourceType(apiVersion, kind);
    const { items } = await client.list(type, { labelSelector: ADMISSION_LABEL });
    for (const { metadata } of items) await client.delete(type, metadata.name);
  }
}
