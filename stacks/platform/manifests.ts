import type { Manifest } from "../../providers/kubernetes/client";
import { customResourceDefinition } from "../contract/crd";
import type { AnyKind } from "../contract/kind";
import { access } from "./access";
import type { Configuration } from "./configuration";
import { LABELS } from "./labels";
import { monitoring } from "./monitoring";
import { network } from "./network";
import { proxy } from "./proxy";
import { secrets } from "./secrets";
import { workload } from "./workload";

/**
 * Everything that Kindstack is in a cluster, in an order in which it can be applied: what `pulumi up` installs and what
 * `kindstack install --print` prints.
 */
export async function platformManifests(configuration: Configuration, kinds: readonly AnyKind[]): Promise<Manifest[]> {
  return [
    namespace(configuration),
    ...(configuration.crds ? kinds.map(customResourceDefinition) : []),
    ...access(configuration, kinds),
    ...secrets(configuration),
    ...(await workload(configuration)),
    ...network(configuration),
    ...monitoring(configuration),
    ...proxy(configuration),
  ];
}

/** The operator runs by the restricted standard, and nothing else is let into its namespace that does not. */
function namespace({ namespace: name }: Configuration): Manifest {
  return {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name, labels: { ...LABELS, "pod-security.kubernetes.io/enforce": "restricted" } },
  };
}
