import { Command } from "commander";
import { requireManifests } from "../../stacks/contract/manifests";
import { stackName } from "../../stacks/contract/object";
import { kinds } from "../../stacks/index";
import { declaredObjects } from "../../stacks/up/objects";

export function stackNameCommand(): Command {
  return new Command("stack-name")
    .description("print the names of the stacks that stand behind the custom resources in files")
    .argument("<file...>", "files or folders of custom resources")
    .addHelpText("after", '\nExample:\n  pulumi stack init "$(kindstack stack-name tenant.yaml)"')
    .action(async (files: string[]) => {
      const objects = await declaredObjects(await requireManifests(files), kinds, "");
      for (const { kind, key } of objects) {
        process.stdout.write(`${stackName(kind, key)}\n`);
      }
    });
}
