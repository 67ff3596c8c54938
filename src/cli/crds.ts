import { Command } from "commander";
import { type InstalledRules, installedDefinitions } from "../../stacks/contract/installed-definitions";
import { allKinds, type KindsOption, kindsOption } from "./kinds-option";
import { printYaml } from "./print-yaml";

export function crdsCommand(): Command {
  return new Command("crds")
    .description("print the CustomResourceDefinitions of kinds, plans and approvals, and their policies, as YAML")
    .addOption(kindsOption("kinds to print"))
    .option("--author-may-not-approve", "also the policies that record who changes an object", false)
    .addHelpText("after", "\nExample:\n  kindstack crds | kubectl apply --server-side -f -")
    .action((options: KindsOption & Required<InstalledRules>) => {
      printYaml(installedDefinitions(allKinds(options), options));
    });
}
