import { Command } from "commander";
import type { AnyKind } from "../../stacks/contract/kind";
import { stackName } from "../../stacks/contract/object";
import { kinds } from "../../stacks/index";
import type { StackReader } from "../automation/stack-reader";
import { findKind } from "../preview/kind-name";
import { INSPECTION_HELP, withInspection } from "./inspection";

/** For a command's `<kind>`. */
export const KIND_HELP = "such as Tenant, tenant, tenants or tenants.multitenancy.codereliant.io";

/**
 * A command that shows something of one object's stack.
 *
 * @param show what to print; `undefined` when there is no such stack
 */
export function objectCommand(
  name: string,
  description: string,
  show: (reader: StackReader, stack: string, signal: AbortSignal) => Promise<string | undefined>,
): Command {
  const command = new Command(name)
    .description(description)
    .argument("<kind>", KIND_HELP)
    .argument("<name>", "the object's name")
    .option("-n, --namespace <namespace>", "the object's namespace (default: the kubeconfig's)")
    .addHelpText("after", INSPECTION_HELP)
    .action(async (word: string, objectName: string, options: { namespace?: string }) => {
      const kind = kindArgument(command, word);
      await withInspection(async ({ reader, namespace, signal }) => {
        const stack = stackName(kind, keyOf(kind, objectName, options.namespace ?? namespace));
        const text = await show(reader, stack, signal);
        if (text === undefined) throw new Error(`${kind.kind} ${objectName} has no stack (${stack})`);
        process.stdout.write(`${text}\n`);
      });
    });
  return command;
}

/** The kind of that name; ends the command as wrongly used when there is none or more than one. */
export function kindArgument(command: Command, word: string): AnyKind {
  try {
    return findKind(kinds, word);
  } catch (error) {
    return command.error(`error: ${(error as Error).message}`);
  }
}

function keyOf(kind: AnyKind, name: string, namespace: string): string {
  return kind.scope === "Cluster" ? name : `${namespace}/${name}`;
}
