import { Command } from "commander";
import { customResourceDefinition } from "../../stacks/contract/crd";
import { allKinds, type KindsOption, kindsOption } from "./kinds-option";
import { printYaml } from "./print-yaml";

export function crdsCommand(): Command {
  return new Command("crds")
    .description("print the CustomResourceDefinitions of kinds as YAML")
    .addOption(kindsOption("kinds to print"))
    .addHelpText("after", "\nExample:\n  kindstack crds | kubectl apply --server-side -f -")
    .action((options: KindsOption) => {
      printYaml(allKinds(options).map((kind) => customResourceDefinition(kind)));
    });
}
