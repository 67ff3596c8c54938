import { Command } from "commander";
import { type InstalledRules, installedDefinitions } from "../../stacks/contract/installed-definitions";
import { installedIn } from "../../stacks/platform/manifests";
import { allKinds, type KindsOption, kindsOption } from "./kinds-option";
import { printYaml } from "./write-output";

export function crdsCommand(): Command {
  return new Command("crds")
    .description("print the CustomResourceDefinitions of kinds, plans and approvals, and their policies, as YAML")
    .addOption(kindsOption("kinds to print"))
    .option("--author-may-not-approve", "also the policies that record who changes an object", false)
    .option("-n, --namespace <namespace>", "as those of the installation in this namespace")
    .addHelpText(
      "after",
      `
Examples:
  kindstack crds | kubectl apply --server-side -f -
  kindstack crds --namespace kindstack-system | kubectl apply --server-side -f -      # beside an installation`,
    )
    .action(({ namespace, ...options }: KindsOption & Required<InstalledRules> & { namespace?: string }) => {
      const manifests = installedDefinitions(allKinds(options), options);
      printYaml(namespace === undefined ? manifests : manifests.map((manifest) => installedIn(namespace, manifest)));
    });
}
