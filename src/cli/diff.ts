import { Command } from "commander";
import type { LiveObject } from "../../providers/kubernetes/client";
import type { AnyKind } from "../../stacks/contract/kind";
import { kinds } from "../../stacks/index";
import type { ClusterView } from "../preview/cluster-view";
import { candidateOfLive } from "../preview/preview";
import { INSPECTION_HELP, withInspection } from "./inspection";
import { KIND_HELP, kindArgument } from "./object-command";
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
  kindstack diff tenant.multitenancy acme --refresh    # what has drifted
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
        const found = await Promise.all(
          chosen.map(async (kind) => {
            if (name === undefined) return cluster.list(kind, options.namespace);
            return [await one(cluster, kind, name, options.namespace ?? inspection.namespace)];
          }),
        );
        const candidates = chosen.flatMap((kind, index) => found[index]?.map((o) => candidateOfLive(kind, o)) ?? []);
        await report(inspection, options, { candidates, problems: [], ignored: 0 });
      });
    });
}

/** @throws Error when there is no such object, or it may not be read */
async function one(cluster: ClusterView, kind: AnyKind, name: string, namespace: string): Promise<LiveObject> {
  const sighting = await cluster.find(kind, name, kind.scope === "Cluster" ? undefined : namespace);
  if (!sighting.seen) throw new Error(sighting.why);
  if (sighting.object === undefined) throw new Error(`there is no ${kind.kind} ${name}`);
  return sighting.object;
}
