import { Command } from "commander";
import { kubeconfigNamespace } from "../../providers/kubernetes/connection";
import { findKind } from "../../stacks/contract/kind-name";
import { objectKey, stackName } from "../../stacks/contract/object";
import type { GoEngine } from "../automation/go-engine";
import { KIND_HELP, type KindsOption, kindsOption, kindsWith } from "./kinds-option";
import { STATES_HELP, withStates } from "./open-stacks";
import { Progress } from "./progress";

const HELP = `
status.stack.name of an object has its stack's name.
${STATES_HELP}`;

export function unlockCommand(): Command {
  const command: Command = new Command("unlock")
    .description("remove the locks of a stack whose process is gone, such as a `pulumi up` that was killed")
    .argument("<kind>", `${KIND_HELP}; without a name, the name of the stack`)
    .argument("[name]", "the object's name")
    .option("-n, --namespace <namespace>", "the object's namespace (default: the kubeconfig's)")
    .addOption(kindsOption("kinds to choose from"))
    .addHelpText("after", `\nExample:\n  kindstack state unlock tenant.multitenancy acme\n${HELP}`)
    .action((word: string, name: string | undefined, options: KindsOption & { namespace?: string }) => {
      const stack = name === undefined ? word : stackOf(word, name);
      return repair(async (engine, signal) => {
        const locks = await engine.unlock(stack, signal);
        if (locks === undefined) throw new Error(`there is no stack ${stack}`);
        return locks.length === 0 ? [`${stack} is not locked`] : locks.map((lock) => `removed the lock ${lock}`);
      });

      function stackOf(word: string, name: string): string {
        const kind = findKind(kindsWith(command, options, word), word);
        const namespace = kind.scope === "Cluster" ? undefined : (options.namespace ?? kubeconfigNamespace());
        return stackName(kind, objectKey({ name, ...(namespace !== undefined && { namespace }) }));
      }
    });
  return command;
}

export function unprotectCommand(): Command {
  return new Command("unprotect")
    .description("allow the deletion of a stack's protected resources, or of one")
    .argument("<stack>", "name of the stack")
    .argument("[urn]", "the resource (default: all of the stack)")
    .addHelpText("after", `\nExample:\n  kindstack state unprotect "$(kindstack stack-name tenant.yaml)"\n${HELP}`)
    .action((stack: string, urn: string | undefined) =>
      repair(async (engine, signal) => {
        const urns = await engine.unprotect(stack, urn, signal);
        return urns.length === 0 ? ["nothing is protected"] : urns.map((one) => `unprotected ${one}`);
      }),
    );
}

async function repair(work: (engine: GoEngine, signal: AbortSignal) => Promise<string[]>): Promise<void> {
  const lines = await withStates(new Progress(), work);
  process.stdout.write(`${lines.join("\n")}\n`);
}
