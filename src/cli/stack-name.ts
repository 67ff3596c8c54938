import { Command } from "commander";
import { kubeconfigNamespace } from "../../providers/kubernetes/connection";
import { requireManifests } from "../../stacks/contract/manifests";
import { stackName } from "../../stacks/contract/object";
import { declaredObjects } from "../../stacks/up/objects";
import { allKinds, type KindsOption, kindsOption } from "./kinds-option";

export function stackNameCommand(): Command {
  return new Command("stack-name")
    .description("print the names of the stacks of the custom resources in files")
    .argument("<file...>", "files or folders of custom resources")
    .addOption(kindsOption("kinds of the objects"))
    .option("-n, --namespace <namespace>", "namespace of objects without one (default: the kubeconfig's)")
    .addHelpText(
      "after",
      `
Example:
  pulumi stack init "$(kindstack stack-name tenant.yaml)"`,
    )
    .action(async (files: string[], options: KindsOption & { namespace?: string }) => {
      const manifests = await requireManifests(files);
      const namespace = options.namespace ?? kubeconfigNamespace();
      const objects = await declaredObjects(manifests, allKinds(options), "", namespace);
      for (const { kind, key } of objects) process.stdout.write(`${stackName(kind, key)}\n`);
    });
}
