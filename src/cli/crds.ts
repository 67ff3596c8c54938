import { Command } from "commander";
import { customResourceDefinition } from "../../stacks/contract/crd";
import { modePolicies } from "../../stacks/contract/mode-policy";
import { allKinds, type KindsOption, kindsOption } from "./kinds-option";
import { printYaml } from "./print-yaml";

export function crdsCommand(): Command {
  return new Command("crds")
    .description("print the CustomResourceDefinitions of kinds, and the policies for their modes, as YAML")
    .addOption(kindsOption("kinds to print"))
    .addHelpText("after", "\nExample:\n  kindstack crds | kubectl apply --server-side -f -")
    .action((options: KindsOption) => {
      const kinds = allKinds(options);
      printYaml([...kinds.map((kind) => customResourceDefinition(kind)), ...modePolicies(kinds)]);
    });
}
