import { Command } from "commander";
import { INSPECTION_HELP, withInspection } from "./inspection";
import { allKinds } from "./kinds-option";
import { KIND_HELP, kindsWith } from "./object-command";
import { print, type ReportOptions, withReportOptions } from "./preview";
import { kubeconfigNamespace, SERVER_HELP, withServer } from "./server-options";

export function diffCommand(): Command {
  const command = new Command("diff")
    .description("show what an update of objects in the cluster would change in their stacks; changes nothing")
    .argument("[kind]", KIND_HELP)
    .argument("[name]", "name of one object")
    .option("--all", "all objects of all kinds", false);
  return withReportOptions(command)
    .addHelpText(
      "after",
      `
Examples:
  kindstack diff tenant.multitenancy acme --refresh    # what has drifted
  kindstack diff postgreswriters -n default
  kindstack diff --all
${INSPECTION_HELP}
${SERVER_HELP}`,
    )
    .action(async (kind: string | undefined, name: string | undefined, options: ReportOptions & { all: boolean }) => {
      if (options.all === (kind !== undefined)) command.error("error: name either a kind or --all");
      const chosenKinds = () => (kind === undefined ? allKinds(options) : kindsWith(command, options, kind));
      const { refresh, concurrency } = options;
      // As with kubectl, one object is looked for in one namespace.
      const namespace = options.namespace ?? (name === undefined ? undefined : kubeconfigNamespace());
      const chosen = { ...(kind && { kind }), ...(name && { name }), ...(namespace && { namespace }) };
      const report =
        options.server === undefined
          ? await withInspection({ kinds: chosenKinds(), concurrency }, async (inspector) =>
              inspector.preview(await inspector.selectLive(chosen), refresh),
            )
          : await withServer(options, (remote) => remote.diff({ ...chosen, refresh }));
      print(report, options);
    });
}
