import type { Manifest } from "../../providers/kubernetes/client";
import { INSTALLED_IN_LABEL } from "../contract/installation";
import { installedDefinitions } from "../contract/installed-definitions";
import type { AnyKind } from "../contract/kind";
import { access } from "./access";
import type { Configuration } from "./configuration";
import { LABELS, nameOutside } from "./labels";
import { monitoring } from "./monitoring";
import { network } from "./network";
import { proxy } from "./proxy";
import { secrets } from "./secrets";
import { workload } from "./workload";

/**
 * Everything that Kindstack is in a cluster, in an order in which it can be applied: what `pulumi up` installs and what
 * `kindstack install --print` prints.
 */
export async function platformManifests(configured: Configuration, kinds: readonly AnyKind[]): Promise<Manifest[]> {
  const configuration = { ...configured, admission: configured.admission && kinds.some(needsAdmission) };
  const manifests = [
    namespace(configuration),
    ...(configuration.crds ? installedDefinitions(kinds, configuration) : []),
    ...access(configuration, kinds),
    ...secrets(configuration),
    ...(await workload(configuration)),
    ...network(configuration),
    ...monitoring(configuration),
    ...(await proxy(configuration)),
  ];
  return manifests.map((manifest) =>
    withFurtherMetadata(installedIn(configuration.namespace, manifest), configuration),
  );
}

/** Whether a kind has a say in others' requests, or versions to be converted. */
export function needsAdmission({ capabilities }: AnyKind): boolean {
  return (capabilities.admission ?? capabilities.versions) !== undefined;
}

/** Whether an object comes with the CRDs, and stays with them: what it protects outlives an installation. */
export function isModePolicy({ kind }: Pick<Manifest, "kind" | "metadata">): boolean {
  return /^(Validating|Mutating)AdmissionPolicy/.test(kind);
}

/** What is not in the operator's namespace says which one that is. But for CRDs, its name does as well. */
export function installedIn(namespace: string, manifest: Manifest): Manifest {
  const { kind, roleRef, spec } = manifest as Manifest & Referring;
  if (kind === "Namespace" || manifest.metadata.namespace === namespace) return manifest;
  const labels = { ...manifest.metadata.labels, [INSTALLED_IN_LABEL]: namespace };
  if (kind === "CustomResourceDefinition") return { ...manifest, metadata: { ...manifest.metadata, labels } };
  const named = (name: string | undefined) => nameOutside(namespace, name ?? "");
  return {
    ...manifest,
    metadata: { ...manifest.metadata, name: named(manifest.metadata.name), labels },
    ...(kind === "ClusterRoleBinding" && { roleRef: { ...roleRef, name: named(roleRef?.name) } }),
    ...(spec?.policyName !== undefined && { spec: { ...spec, policyName: named(spec.policyName) } }),
  };
}

/** Manifests that name others. */
interface Referring {
  roleRef?: { name: string };
  spec?: { policyName?: string };
}

/** What is configured gives way to what Kindstack needs itself. */
function withFurtherMetadata(manifest: Manifest, { labels, annotations }: Configuration): Manifest {
  const metadata = { ...manifest.metadata };
  if (Object.keys(labels).length > 0) metadata.labels = { ...labels, ...metadata.labels };
  if (Object.keys(annotations).length > 0) metadata.annotations = { ...annotations, ...metadata.annotations };
  return { ...manifest, metadata };
}

/** The operator runs by the restricted standard, and nothing else is let into its namespace that does not. */
function namespace({ namespace: name }: Configuration): Manifest {
  return {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name, labels: { ...LABELS, "pod-security.kubernetes.io/enforce": "restricted" } },
  };
}
