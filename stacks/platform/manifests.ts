import { TerminalError } from "../../providers/errors";
import type { Manifest } from "../../providers/kubernetes/client";
import { capsuleTenant } from "../capsule-tenant/kind";
import { customResourceDefinition } from "../contract/crd";
import { type AnyKind, kindName } from "../contract/kind";
import { selectKinds } from "../contract/kind-name";
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
 *
 * @param kinds all kinds; the configuration chooses from them
 * @throws TerminalError `Misconfigured` for a kind that does not exist, or that is needed and not chosen
 */
export async function platformManifests(configured: Configuration, kinds: readonly AnyKind[]): Promise<Manifest[]> {
  const chosen = chosenKinds(configured, kinds);
  // Without a kind that has a say in it, or versions to be converted, there is no admission.
  const isServed = ({ capabilities }: AnyKind) => (capabilities.admission ?? capabilities.versions) !== undefined;
  const admission = configured.admission && chosen.some(isServed);
  const configuration = { ...configured, admission, kinds: configured.kinds.length > 0 ? chosen.map(kindName) : [] };
  return [
    namespace(configuration),
    ...(configuration.crds ? chosen.map((kind) => customResourceDefinition(kind)) : []),
    ...access(configuration, chosen),
    ...secrets(configuration),
    ...(await workload(configuration)),
    ...network(configuration),
    ...monitoring(configuration),
    ...proxy(configuration),
  ];
}

/** @throws TerminalError `Misconfigured` for a kind that does not exist, or that is needed and not chosen */
export function chosenKinds({ kinds: names, proxy }: Configuration, kinds: readonly AnyKind[]): readonly AnyKind[] {
  let chosen: readonly AnyKind[];
  try {
    chosen = selectKinds(kinds, names);
  } catch (error) {
    throw new TerminalError("Misconfigured", `kindstack:kinds: ${(error as Error).message}`);
  }
  if (proxy && !chosen.includes(capsuleTenant)) {
    throw new TerminalError("Misconfigured", `kindstack:proxy: true needs ${kindName(capsuleTenant)} among the kinds`);
  }
  return chosen;
}

/** The operator runs by the restricted standard, and nothing else is let into its namespace that does not. */
function namespace({ namespace: name }: Configuration): Manifest {
  return {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name, labels: { ...LABELS, "pod-security.kubernetes.io/enforce": "restricted" } },
  };
}
