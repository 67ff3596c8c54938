import { Command } from "commander";
import { kinds } from "../../stacks/index";
import { candidateOfLive } from "../preview/preview";
import { INSPECTION_HELP, withInspection } from "./inspection";
import { KIND_HELP, kindArgument, namedObject } from "./object-argument";
import { type ReportOptions, report, withReportOptions } from "./preview";

export function diffCommand(): Command {
  const command = new Command("diff")
    .description("say what the objects in the cluster, as they are now, would do to their stacks; nothing is changed")
    .argument("[kind]", KIND_HELP)
    .argument("[name]", "one object of it")
    .option("--all", "all objects of all kinds", false);
  return withReportOptions(command)
    .addHelpText(
      "after",
      `
Examples:
  kindstack diff tenant acme --refresh    # what has drifted
  kindstack diff postgreswriters -n default
  kindstack diff --all
${INSPECTION_HELP}`,
    )
    .action(async (word: string | undefined, name: string | undefined, options: ReportOptions & { all: boolean }) => {
      if (options.all === (word !== undefined)) command.error("error: either a kind or --all is needed");
      const chosen = word === undefined ? kinds : [kindArgument(command, word)];
      await withInspection(async (inspection) => {
        const { cluster } = inspection;
        if (cluster.unreachable !== undefined) throw new Error(cluster.unreachable);
        const lists = await Promise.all(
          chosen.map(async (kind) => {
            if (name === undefined) return (await cluster.list(kind, options.namespace)).map((o) => ({ kind, object: o }));
            const { namespace } = namedObject(kind, name, options.namespace ?? inspection.namespace);
            const sighting = await cluster.find(kind, name, namespace);
            if (!sighting.seen) throw new Error(sighting.why);
            if (sighting.object === undefined) throw new Error(`there is no ${kind.kind} ${name}`);
            return [{ kind, object: sighting.object }];
          }),
        );
        const candidates = lists.flat().map(({ kind, object }) => candidateOfLive(kind, object));
        await report(inspection, options, { candidates, problems: [], ignored: 0 });
      });
    });
}
