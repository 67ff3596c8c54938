import { errorMessageOf, RetryableError, TerminalError } from "../errors";
import type { DynamicProvider } from "../provider";
import { spellingOf } from "../spelling";
import { connectKubernetes } from "./connection";
import { isClusterUid, isOwnerIn, mayBeOwnerOf, type Owner } from "./ownership";
import type { LiveObject } from "./types";

/** `"true"` stops all work on an object, its deletion included. */
export const PAUSED_ANNOTATION = "kindstack.dev/paused";
export const PAUSED = spellingOf(["true", "false"]);

/** `Tenant.multitenancy.codereliant.io/acme`, or `PodSet.example.dev/team/web`. */
const DESCRIPTION = /^(?<kind>[^./]+)\.(?<group>[^/]+)\/(?:(?<namespace>[^/]+)\/)?(?<name>[^/]+)$/;

/**
 * A provider that deletes nothing for Pulumi's own script while an operator works on the owner: it would make everything again.
 * `pulumi destroy` runs no program, so that a program could not refuse it.
 */
export function refusingManaged<I extends object, O extends { owner: Owner }>(
  provider: DynamicProvider<I, O>,
): DynamicProvider<I, O> {
  return {
    ...provider,
    async delete(id, outs, context) {
      if (context === undefined) await refuseManaged(outs.owner);
      return provider.delete(id, outs, context);
    },
  };
}

/**
 * The error about an object that the operator works on, for who would work on the same stack.
 *
 * @param type what kubectl calls objects of the kind
 */
export function managedByOperator(owner: string, type: string, { metadata }: Pick<LiveObject, "metadata">) {
  const inNamespace = metadata.namespace === undefined ? "" : ` -n ${metadata.namespace}`;
  return new TerminalError(
    "Watched",
    `${owner} is in the cluster, where the operator works on it. To take it over, pause it first: ` +
      `kubectl annotate ${type} ${metadata.name}${inNamespace} ${PAUSED_ANNOTATION}=true`,
  );
}

async function refuseManaged({ uid, description }: Owner): Promise<void> {
  const { kind, group, namespace, name } = DESCRIPTION.exec(description)?.groups ?? {};
  if (kind === undefined || name === undefined) return;
  const isInCluster = isClusterUid(uid);
  // A stack of `pulumi up` with a name of its own is no operator's, and needs no cluster.
  if (!isInCluster && !mayBeOwnerOf([namespace, name].filter(Boolean).join("."), uid)) return;
  // Where this version is not served, another one of the group is asked.
  const lookup = await connectKubernetes().get({ apiVersion: `${group}/v1`, kind }, name, namespace);
  if (lookup.outcome === "unknown") {
    throw new RetryableError(
      "Unreachable",
      `the operator may be working on ${description}: ${errorMessageOf(lookup.error)}`,
    );
  }
  if (lookup.outcome === "absent" || isPaused(lookup.object)) return;
  // A stack of `pulumi up` is the operator's as well where the object's status names it.
  const { stack } = (lookup.object.status ?? {}) as { stack?: { name?: string } };
  if (!isInCluster && !isOwnerIn(stack?.name ?? "", uid)) return;
  throw managedByOperator(description, `${kind}.${group}`.toLowerCase(), lookup.object);
}

function isPaused({ metadata }: LiveObject): boolean {
  return PAUSED.read(metadata.annotations?.[PAUSED_ANNOTATION] ?? "") === "true";
}
