import { availableParallelism } from "node:os";
import { Command, InvalidArgumentError, Option } from "commander";
import { kubeconfigNamespace } from "../../providers/kubernetes/connection";
import { type Manifests, readManifests } from "../../stacks/contract/manifests";
import { objectKey } from "../../stacks/contract/object";
import { UNCHECKED } from "../plan/resource-plan";
import { FAIL_ON_WORDS, type FailOnWord, objectsToFailOn, type Report } from "../preview/report";
import { byDifference, counted } from "../preview/wording";
import { some } from "../text/some";
import { endIfBlocked } from "./blocked";
import { behindOf } from "./git";
import { INSPECTION_HELP, inspect } from "./inspection";
import { allKinds, type KindsOption, kindsOption } from "./kinds-option";
import { positive } from "./parse-options";
import { readManifestsAt, renderManifests, renderManifestsAt } from "./revision";
import { type ServerOptions, withServerOptions } from "./server-options";
import { untilInterrupted } from "./until-interrupted";
import { RENDERERS, type ReportFormat, reportFormat, writeOutput } from "./write-output";

/** What `preview` and `diff` have in common. */
export interface ReportOptions extends ServerOptions, KindsOption {
  output: ReportFormat;
  failOn: FailOnWord[];
  refresh: boolean;
  concurrency: number;
  namespace?: string;
  report?: string;
}

interface CommandOptions extends ReportOptions {
  filename: string[];
  render?: string;
  pruneAgainst?: string;
  pruneSelector?: string;
  propose?: true;
  fleet?: true;
}

export function previewCommand(): Command {
  const command = new Command("preview")
    .description("show what the objects in files would change in their stacks; changes nothing")
    .option("-f, --filename <paths...>", "files, or folders with all YAML and JSON in them; - for standard input", [])
    .option("--render <command>", "a command that prints manifests, such as 'kubectl kustomize overlays/prod'")
    .option(
      "--prune-against <revision>",
      "show objects that the files had in a git revision, and no longer have, as deleted; with --render, what the " +
        "command prints there",
    )
    .addOption(
      new Option(
        "--prune-selector <labels>",
        "show objects of the cluster with these labels that are not given as deleted",
      ).conflicts("pruneAgainst"),
    )
    .option(
      "--propose",
      "show the digests of the plans that the operator would make, for `kindstack approve --report`; implies --refresh",
    )
    .addOption(
      new Option(
        "--fleet",
        "instead of files, preview all live objects of the kinds in --kinds with the programs and schemas that are there, " +
          "by what would happen to them",
      ).conflicts(["filename", "render", "pruneAgainst", "pruneSelector", "server"]),
    )
    .option("--report <file>", "also write the report to this file, as JSON, for `kindstack approve --report`");
  return withReportOptions(command)
    .addHelpText(
      "after",
      `
Exit codes: 0 all objects were previewed and --fail-on found nothing; 1 otherwise, after the report; 2 wrong usage.

Examples:
  kindstack preview -f manifests/
  kindstack preview -f manifests/ --prune-against origin/main --output markdown --fail-on replace,delete
  kindstack preview --render 'kubectl kustomize overlays/prod' --prune-against origin/main
  helm template charts/tenants | kindstack preview -f - --prune-selector app.kubernetes.io/instance=tenants
  kindstack preview -f manifests/ --server https://kindstack.example.com --token-file token
  kindstack preview --fleet --kinds ./src --fail-on replace,delete    # before a program is rolled out
  kindstack preview -f manifests/ --propose --report report.json && kindstack approve --report report.json
${INSPECTION_HELP}`,
    )
    .action(async (options: CommandOptions) => {
      const problem = usageProblem(options);
      if (problem !== undefined) command.error(`error: ${problem}`);
      const { refresh, concurrency, propose, pruneSelector: selector } = options;
      if (options.fleet) return conclude(await previewFleet(options), options);
      const { manifests, before } = await readSources(options);
      const namespace = options.namespace ?? kubeconfigNamespace();
      const within = options.namespace === undefined ? {} : { namespace };
      const prune = selector === undefined ? {} : { prune: { selector, ...within } };
      const extras = { ...prune, ...(before && { before }), ...(propose && { propose }) };
      const request = { manifests, namespace, refresh, ...extras };
      const report = await inspect("/v1/preview", request, options, () => ({ kinds: allKinds(options), concurrency }));
      const { unseen = [], behind = [] } = before ?? {};
      const whole = { ...report, behind, unseenDeletions: [...report.unseenDeletions, ...unseen] };
      await conclude(whole, options);
    });
}

async function previewFleet(options: CommandOptions): Promise<Report> {
  using _ = endIfBlocked();
  const { namespace, refresh, concurrency, propose } = options;
  const request = { ...(namespace && { namespace }), refresh, ...(propose && { propose }) };
  return byDifference(await inspect("/v1/diff", request, options, () => ({ kinds: allKinds(options), concurrency })));
}

function usageProblem({ filename, render, pruneAgainst, pruneSelector, fleet }: CommandOptions): string | undefined {
  if (fleet) return undefined;
  if (filename.length === 0 && render === undefined) {
    return "name files with --filename, a command that prints manifests with --render, or --fleet";
  }
  if (pruneSelector?.trim() === "") return "--prune-selector: must name labels, such as team=a";
  if (pruneAgainst === undefined || !filename.includes("-")) return undefined;
  return (
    "--prune-against cannot tell what the standard input was at another revision. Give the command that writes it with " +
    "--render, which runs it there too, or compare with the objects in the cluster by --prune-selector"
  );
}

async function readSources({ filename, render, pruneAgainst }: CommandOptions) {
  const sources = [await readManifests(filename, pruneAgainst !== undefined)];
  if (render !== undefined) sources.push(await untilInterrupted((signal) => renderManifests(render, signal)));
  if (pruneAgainst === undefined) return { manifests: merged(sources) };
  const earlier = [await readManifestsAt(pruneAgainst, filename)];
  if (render !== undefined)
    earlier.push(await untilInterrupted((signal) => renderManifestsAt(render, pruneAgainst, signal)));
  return {
    manifests: merged(sources),
    before: {
      ...merged(earlier),
      unseen: earlier.flatMap(({ unseen }) => unseen),
      behind: await behindOf(pruneAgainst, render === undefined ? filename : [...filename, "."], {
        all: render !== undefined,
      }),
    },
  };
}

function merged(sources: readonly Manifests[]) {
  return {
    objects: sources.flatMap(({ objects }) => objects),
    problems: sources.flatMap(({ problems }) => problems),
    notes: sources.flatMap(({ notes = [] }) => notes),
  };
}

export function withReportOptions(command: Command): Command {
  return withServerOptions(
    command
      .addOption(reportFormat())
      .option(
        "--fail-on <operations>",
        `exit with 1 if one of these would happen, or anything is ${UNCHECKED}: ${FAIL_ON_WORDS.join(", ")}`,
        gates,
        [],
      )
      .option("--refresh", "also compare with the cluster and the database, to show corrections of drift", false)
      .option("--concurrency <n>", "maximum number of previews at the same time", positive, availableParallelism())
      .addOption(kindsOption("kinds of the objects"))
      .option("-n, --namespace <namespace>", "namespace of objects without one (default: the kubeconfig's)"),
  );
}

/** Prints a report, writes it to the file that is named, and judges it. @throws Error where it does not pass */
export async function conclude(report: Report, options: ReportOptions): Promise<void> {
  const { output, report: file } = options;
  process.stdout.write(`${RENDERERS[output](report).trimEnd()}\n`);
  if (file !== undefined) await writeOutput(file, RENDERERS.json(report));
  judge(report, options);
}

function judge(report: Report, { failOn }: ReportOptions): void {
  const { invalid = 0, failed = 0 } = report.summary;
  // A gate on anything fails where it could not look.
  const words = failOn.length > 0 ? [...new Set([...failOn, UNCHECKED])] : [];
  const names = objectsToFailOn(report, words as FailOnWord[]).map((plan) => `${plan.kind} ${objectKey(plan)}`);
  const unseen = [
    ...(failOn.includes("delete") ? report.unseenDeletions : []),
    ...(failOn.length > 0 ? report.unchecked : []),
    ...(failOn.includes("behind") ? report.behind : []),
  ];
  const problems = report.problems.length;
  const broken = [
    problems > 0 && `${counted(problems, "problem")} with files`,
    invalid > 0 && `${invalid} invalid`,
    failed > 0 && `${failed} would fail or could not be previewed`,
    names.length > 0 && `--fail-on ${failOn}: ${some(names, MAX_NAMED)}`,
    unseen.length > 0 && `--fail-on ${failOn}: ${some(unseen, MAX_NAMED)}`,
  ].filter(Boolean);
  if (broken.length > 0) throw new Error(broken.join("; "));
}

/** So many an error names; the report has all. */
const MAX_NAMED = 20;

function gates(text: string, previous: readonly FailOnWord[]): FailOnWord[] {
  const added = text.split(",").map((word) => {
    const operation = FAIL_ON_WORDS.find((known) => known === word.trim());
    if (operation === undefined) throw new InvalidArgumentError(`allowed: ${FAIL_ON_WORDS.join(", ")}.`);
    return operation;
  });
  return [...previous, ...added];
}
