import { Command } from "commander";
import { stringify } from "yaml";
import { customResourceDefinition } from "../../stacks/contract/crd";
import { kinds } from "../../stacks/index";

export function crdsCommand(): Command {
  return new Command("crds")
    .description("print the CustomResourceDefinitions of all kinds as YAML")
    .addHelpText("after", "\nExample:\n  kindstack crds | kubectl apply --server-side -f -")
    .action(() => {
      // Aliases are for people who write YAML; not every reader of it resolves them.
      const documents = kinds.map((kind) =>
        stringify(customResourceDefinition(kind), { aliasDuplicateObjects: false }),
      );
      process.stdout.write(documents.join("---\n"));
    });
}
