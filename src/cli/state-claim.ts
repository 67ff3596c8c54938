import { randomUUID } from "node:crypto";
import { Command } from "commander";
import { TerminalError } from "../../providers/errors";
import { clusterOf } from "../../providers/kubernetes/cluster";
import { withKubernetes } from "../../providers/kubernetes/connection";
import type { StackEngine } from "../automation/engine";
import type { BackendOwner } from "../automation/owner-file";
import { describeOwner, howToClaim, isOwner, type OperatorIdentity } from "../backend/owner";
import { operatorNamespace } from "../config";
import { STATES_HELP, withStates } from "./open-stacks";
import { Progress } from "./progress";

export function claimCommand(): Command {
  return new Command("claim")
    .description("let the operator of the current cluster use a backend that is not its own, or may not be")
    .option("-n, --namespace <namespace>", "namespace of the operator (default: KINDSTACK_NAMESPACE, or the Pod's)")
    .option("--from <cluster>", "the cluster whose backend it is, if that has another name; its operator stops writing")
    .addHelpText(
      "after",
      `
Examples:
  kindstack state claim -n kindstack-system
  KINDSTACK_CLUSTER=prod kindstack state claim -n kindstack-system --from staging
${STATES_HELP}
  KINDSTACK_CLUSTER                 the cluster's name, as the operator has it (default: its UID)
  KUBECONFIG                        the cluster`,
    )
    .action(async ({ namespace, from }: { namespace?: string; from?: string }) => {
      const found = await withKubernetes(clusterOf);
      if (found === undefined) {
        const problem = "you may not `get` the Namespace kube-system, whose UID names the cluster";
        throw new TerminalError("Misconfigured", problem);
      }
      const { name: cluster, uid: clusterUid } = found;
      const own = { cluster, clusterUid, namespace: namespace ?? operatorNamespace(process.env) };
      const line = await withStates(new Progress(), (engine, signal) => claim(engine, own, from, signal));
      process.stdout.write(`${line}\n`);
    });
}

/** @returns what was done */
async function claim(
  engine: Pick<StackEngine, "backendOwner" | "claimBackend">,
  own: OperatorIdentity,
  from: string | undefined,
  signal: AbortSignal,
): Promise<string> {
  const before = await engine.backendOwner(signal);
  if (before !== undefined && isOwner(before, own)) return `the backend belongs to ${describeOwner(own)} already`;
  if (before !== undefined && before.cluster !== own.cluster && before.cluster !== from) {
    throw new TerminalError(
      "Refused",
      `the backend belongs to ${describeOwner(before)}, and this would make it that of ${describeOwner(own)}. ` +
        `If no operator uses it there any more: ${howToClaim(own, before)}`,
    );
  }
  const owner: BackendOwner = { id: randomUUID(), ...own, since: new Date().toISOString() };
  const now = await engine.claimBackend(owner, before?.id, signal);
  if (now.id !== owner.id) {
    throw new TerminalError(
      "Refused",
      `${describeOwner(now)} has claimed the backend at the same moment; nothing was written`,
    );
  }
  const former = before === undefined ? "" : `, and no longer to ${describeOwner(before)}`;
  return `the backend belongs to ${describeOwner(own)} now${former}`;
}
