import { Command } from "commander";
import type { AnyKind } from "../../stacks/contract/kind";
import { findKind } from "../../stacks/contract/kind-name";
import type { Inspector, LocatedStack } from "../preview/inspector";
import type { RemoteInspector } from "../preview/remote";
import type { ObjectRequest } from "../preview/requests";
import { INSPECTION_HELP, withInspection } from "./inspection";
import { allKinds, type KindsOption, kindsOption } from "./kinds-option";
import { kubeconfigNamespace, SERVER_HELP, type ServerOptions, withServer, withServerOptions } from "./server-options";

/** For a command's `<kind>`. */
export const KIND_HELP = "such as Tenant, tenant, tenants or tenants.multitenancy.codereliant.io";

/** What a command shows of one object's stack, which may be one that other objects share. */
export interface ObjectCommand<T> {
  name: string;
  /** The command with its parents, such as `state export`; by default its name. */
  usage?: string;
  description: string;
  /** Looks here. */
  local(inspector: Inspector, located: LocatedStack): Promise<T>;
  /** Asks the operator. */
  remote(inspector: RemoteInspector, request: ObjectRequest): Promise<T>;
  /** The text to print. */
  render(value: T): string;
}

interface ObjectOptions extends ServerOptions, KindsOption {
  namespace?: string;
}

export function objectCommand<T>({
  name,
  usage = name,
  description,
  local,
  remote,
  render,
}: ObjectCommand<T>): Command {
  const command = new Command(name)
    .description(description)
    .argument("<kind>", KIND_HELP)
    .argument("<name>", "the object's name")
    .option("-n, --namespace <namespace>", "the object's namespace (default: the kubeconfig's)")
    .addOption(kindsOption("kinds to choose from"));
  return withServerOptions(command)
    .addHelpText(
      "after",
      `\nExample:\n  kindstack ${usage} tenant.multitenancy acme\n${INSPECTION_HELP}\n${SERVER_HELP}`,
    )
    .action(async (word: string, objectName: string, options: ObjectOptions) => {
      const request = { kind: word, name: objectName, namespace: options.namespace ?? kubeconfigNamespace() };
      const value =
        options.server === undefined
          ? await withInspection({ kinds: kindsWith(command, options, word) }, async (inspector) =>
              local(inspector, await inspector.locate(request)),
            )
          : await withServer(options, (inspector) => remote(inspector, request));
      process.stdout.write(`${render(value)}\n`);
    });
}

/** The chosen kinds; ends the command as wrongly used when none of them, or more than one, has that name. */
export function kindsWith(command: Command, options: KindsOption, word: string): readonly AnyKind[] {
  const kinds = allKinds(options);
  try {
    findKind(kinds, word);
    return kinds;
  } catch (error) {
    return command.error(`error: ${(error as Error).message}`);
  }
}
