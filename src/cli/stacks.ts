import { Command } from "commander";
import { TerminalError } from "../../providers/errors";
import { clusterOf } from "../../providers/kubernetes/cluster";
import { withKubernetes } from "../../providers/kubernetes/connection";
import type { StackEngine } from "../automation/engine";
import { type OrphanedStack, orphanedStacks } from "../backend/orphaned-stacks";
import { describeOwner } from "../backend/owner";
import { visible } from "../text/plain-text";
import { renderTable } from "../text/table";
import { STATES_HELP, withStates } from "./open-stacks";
import { Progress } from "./progress";
import { type OutputFormat, outputOption } from "./write-output";

export function stacksCommand(): Command {
  return new Command("stacks")
    .description("list the stacks in the state's backend")
    .option("--orphaned", "only stacks of objects that do not exist in the cluster", false)
    .addOption(outputOption())
    .addHelpText(
      "after",
      `
An orphaned stack is left by an object that was removed without its finalizer, or by a restored backup. To get rid of it:
  create the object again   it takes over the stack with its resources; delete it, with the deletion policy Orphan to keep these
  pulumi destroy --remove   deletes the resources that the stack names, then the stack
  pulumi stack rm --force   deletes the stack alone; its resources stay, unmanaged

Examples:
  kindstack stacks
  kindstack stacks --orphaned
${STATES_HELP}
  KUBECONFIG                        the cluster`,
    )
    .action(async ({ orphaned, output }: { orphaned: boolean; output: OutputFormat }) => {
      const text = await withStates(new Progress(), async (engine, signal) => {
        if (orphaned) return render(await withKubernetes((client) => findOrphaned(client, engine, signal)), output);
        const names = (await engine.listStacks(signal)).map(({ name }) => name).sort();
        return output === "json" ? JSON.stringify(names, undefined, 2) : names.map(visible).join("\n") || "no stacks";
      });
      process.stdout.write(`${text}\n`);
    });
}

/** All stacks of another cluster would be orphaned here. */
async function findOrphaned(
  client: Parameters<typeof orphanedStacks>[0] & Parameters<typeof clusterOf>[0],
  engine: Pick<StackEngine, "listStacks" | "exportStack" | "backendOwner">,
  signal: AbortSignal,
): Promise<OrphanedStack[]> {
  const [owner, cluster] = [await engine.backendOwner(signal), await clusterOf(client)];
  if (owner !== undefined && owner.clusterUid !== cluster?.uid) {
    throw new TerminalError(
      "BackendForeign",
      `the state's backend belongs to ${describeOwner(owner)}, and the current cluster is ${cluster?.name ?? "not known"}: ` +
        "its stacks belong to objects elsewhere",
    );
  }
  return orphanedStacks(client, engine, signal);
}

function render(orphaned: readonly OrphanedStack[], output: OutputFormat): string {
  if (output === "json") return JSON.stringify(orphaned, undefined, 2);
  if (orphaned.length === 0) return "each stack has its object";
  return renderTable(
    ["stack", "resources"],
    orphaned.map(({ stack, resources }) => [visible(stack), String(resources)]),
  );
}
