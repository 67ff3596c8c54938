import { Command } from "commander";
import { stringify } from "yaml";
import { customResourceDefinition } from "../../stacks/contract/crd";
import { allKinds, type KindsOption, kindsOption } from "./kinds-option";

export function crdsCommand(): Command {
  return new Command("crds")
    .description("print the CustomResourceDefinitions of kinds as YAML")
    .addOption(kindsOption("kinds to print"))
    .addHelpText("after", "\nExample:\n  kindstack crds | kubectl apply --server-side -f -")
    .action((options: KindsOption) => {
      // Aliases are for people who write YAML; not every reader of it resolves them.
      const documents = allKinds(options).map((kind) =>
        stringify(customResourceDefinition(kind), { aliasDuplicateObjects: false }),
      );
      process.stdout.write(documents.join("---\n"));
    });
}
