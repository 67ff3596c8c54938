import { Command } from "commander";
import { kubeconfigNamespace } from "../../providers/kubernetes/connection";
import { byDifference } from "../preview/wording";
import { INSPECTION_HELP, inspect } from "./inspection";
import { allKinds, KIND_HELP, kindsWith } from "./kinds-option";
import { conclude, type ReportOptions, withReportOptions } from "./preview";

export function diffCommand(): Command {
  const command = new Command("diff")
    .description("show what an update of objects in the cluster would change in their stacks; changes nothing")
    .argument("[kind]", KIND_HELP)
    .argument("[name]", "name of one object")
    .option("--all", "all objects of all kinds, by what would happen to them", false);
  return withReportOptions(command)
    .addHelpText(
      "after",
      `
Examples:
  kindstack diff tenant.multitenancy acme --refresh    # what has drifted
  kindstack diff postgreswriters -n default
  kindstack diff --all
${INSPECTION_HELP}`,
    )
    .action(async (kind: string | undefined, name: string | undefined, options: ReportOptions & { all: boolean }) => {
      if (options.all === (kind !== undefined)) command.error("error: name either a kind or --all");
      const { refresh, concurrency } = options;
      // As with kubectl, one object is looked for in one namespace.
      const namespace = options.namespace ?? (name === undefined ? undefined : kubeconfigNamespace());
      const request = { ...(kind && { kind }), ...(name && { name }), ...(namespace && { namespace }), refresh };
      const report = await inspect("/v1/diff", request, options, () => ({
        kinds: kind === undefined ? allKinds(options) : kindsWith(command, options, kind),
        concurrency,
      }));
      await conclude(options.all ? byDifference(report) : report, options);
    });
}
