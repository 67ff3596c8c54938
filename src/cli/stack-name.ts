import { Command } from "commander";
import { requireManifests } from "../../stacks/contract/manifests";
import { stackOf } from "../../stacks/contract/shared-stack";
import { declaredObjects } from "../../stacks/up/objects";
import { allKinds, type KindsOption, kindsOption } from "./kinds-option";

export function stackNameCommand(): Command {
  return new Command("stack-name")
    .description("print the names of the stacks of the custom resources in files")
    .argument("<file...>", "files or folders of custom resources")
    .addOption(kindsOption("kinds of the objects"))
    .addHelpText(
      "after",
      `
Objects of a kind that shares stacks are in the first stack of their namespace, unless that stack is full or the operator
runs with --stack-partitions. In the cluster, status.stack.name has the name.

Example:
  pulumi stack init "$(kindstack stack-name tenant.yaml)"`,
    )
    .action(async (files: string[], options: KindsOption) => {
      const objects = await declaredObjects(await requireManifests(files), allKinds(options), "");
      const names = new Set(objects.map(({ kind, key }) => stackOf(kind, key, undefined)));
      for (const name of names) process.stdout.write(`${name}\n`);
    });
}
