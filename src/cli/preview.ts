import { availableParallelism } from "node:os";
import { Command, InvalidArgumentError, Option } from "commander";
import { readManifests } from "../../stacks/contract/manifests";
import { renderMarkdown } from "../preview/render-markdown";
import { renderText } from "../preview/render-text";
import { GATED, type Gated, gatedObjects, type Report } from "../preview/report";
import { readManifestsAt } from "../preview/revision";
import { fullName } from "../preview/wording";
import { safeJson } from "../text/plain-text";
import { INSPECTION_HELP, inspect } from "./inspection";
import { allKinds, type KindsOption, kindsOption } from "./kinds-option";
import { positive } from "./parse-options";
import { kubeconfigNamespace, type ServerOptions, withServerOptions } from "./server-options";

/** What `preview` and `diff` have in common. */
export interface ReportOptions extends ServerOptions, KindsOption {
  output: keyof typeof RENDERERS;
  failOn: Gated[];
  refresh: boolean;
  concurrency: number;
  namespace?: string;
}

interface PreviewOptions extends ReportOptions {
  filename: string[];
  pruneAgainst?: string;
}

const RENDERERS = { text: renderText, markdown: renderMarkdown, json: safeJson } satisfies Record<
  string,
  (report: Report) => string
>;

export function previewCommand(): Command {
  const command = new Command("preview")
    .description("show what the objects in files would change in their stacks; changes nothing")
    .requiredOption(
      "-f, --filename <paths...>",
      "files, or folders with all YAML and JSON in them; - for standard input",
    )
    .option(
      "--prune-against <revision>",
      "show objects that the files had in a git revision, and no longer have, as deleted",
    );
  return withReportOptions(command)
    .addHelpText(
      "after",
      `
Exit codes: 0 all objects were previewed and --fail-on found nothing; 1 otherwise, after the report; 2 wrong usage.

Examples:
  kindstack preview -f manifests/
  kindstack preview -f manifests/ --prune-against origin/main --output markdown --fail-on replace,delete
  kindstack preview -f manifests/ --server https://kindstack.example.com --token-file token
${INSPECTION_HELP}`,
    )
    .action(async (options: PreviewOptions) => {
      const { filename: paths, pruneAgainst, refresh, concurrency } = options;
      const manifests = await readManifests(paths, pruneAgainst !== undefined);
      const before = pruneAgainst === undefined ? undefined : await readManifestsAt(pruneAgainst, paths);
      const namespace = options.namespace ?? kubeconfigNamespace();
      const request = { manifests, namespace, refresh, ...(before && { before }) };
      const report = await inspect("/v1/preview", request, options, () => ({ kinds: allKinds(options), concurrency }));
      print(report, options);
    });
}

export function withReportOptions(command: Command): Command {
  return withServerOptions(
    command
      .addOption(
        new Option("-o, --output <format>", "format of the report").choices(Object.keys(RENDERERS)).default("text"),
      )
      .option("--fail-on <operations>", `exit with 1 if one of these would happen: ${GATED.join(",")}`, gates, [])
      .option("--refresh", "also compare with the cluster and the database, to show corrections of drift", false)
      .option("--concurrency <n>", "maximum number of previews at the same time", positive, availableParallelism())
      .addOption(kindsOption("kinds of the objects"))
      .option("-n, --namespace <namespace>", "namespace of objects without one (default: the kubeconfig's)"),
  );
}

/** Prints a report. @throws Error when there is something in it that must not pass */
export function print(report: Report, { output, failOn }: ReportOptions): void {
  process.stdout.write(`${RENDERERS[output](report).trimEnd()}\n`);
  const { invalid = 0, failed = 0 } = report.summary;
  const gated = gatedObjects(report, failOn);
  const broken = [
    report.problems.length > 0 && `${report.problems.length} problems with files`,
    invalid > 0 && `${invalid} invalid`,
    failed > 0 && `${failed} would fail or could not be previewed`,
    gated.length > 0 && `--fail-on ${failOn}: ${gated.map((plan) => `${plan.kind} ${fullName(plan)}`).join(", ")}`,
  ].filter(Boolean);
  if (broken.length > 0) throw new Error(broken.join("; "));
}

function gates(text: string, previous: readonly Gated[]): Gated[] {
  const added = text.split(",").map((word) => {
    const operation = GATED.find((known) => known === word.trim());
    if (operation === undefined) throw new InvalidArgumentError(`allowed: ${GATED.join(", ")}.`);
    return operation;
  });
  return [...previous, ...added];
}
