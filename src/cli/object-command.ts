import { Command } from "commander";
import type { AnyKind } from "../../stacks/contract/kind";
import { stackOf } from "../../stacks/contract/shared-stack";
import { kinds } from "../../stacks/index";
import type { StackReader } from "../automation/stack-reader";
import { findKind } from "../preview/kind-name";
import { INSPECTION_HELP, withInspection } from "./inspection";

/** For a command's `<kind>`. */
export const KIND_HELP = "such as Tenant, tenant, tenants or tenants.multitenancy.codereliant.io";

/**
 * A command that shows something of one object's stack, which may be one that other objects share.
 *
 * @param show what to print; `undefined` when there is no such stack
 */
export function objectCommand(
  name: string,
  description: string,
  show: (reader: StackReader, stack: string, signal: AbortSignal, key: string) => Promise<string | undefined>,
): Command {
  const command = new Command(name)
    .description(description)
    .argument("<kind>", KIND_HELP)
    .argument("<name>", "the object's name")
    .option("-n, --namespace <namespace>", "the object's namespace (default: the kubeconfig's)")
    .addHelpText("after", INSPECTION_HELP)
    .action(async (word: string, objectName: string, options: { namespace?: string }) => {
      const kind = kindArgument(command, word);
      await withInspection(async ({ reader, cluster, namespace, signal }) => {
        const place = kind.scope === "Cluster" ? undefined : (options.namespace ?? namespace);
        const key = place === undefined ? objectName : `${place}/${objectName}`;
        // Which of a namespace's stacks an object shares is recorded on the object.
        const sighting = kind.granularity === "namespace" ? await cluster.find(kind, objectName, place) : undefined;
        const stack = stackOf(kind, key, sighting?.seen ? sighting.object : undefined);
        const text = await show(reader, stack, signal, key);
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
