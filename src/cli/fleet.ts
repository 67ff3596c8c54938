import { Command } from "commander";
import { withKubernetes } from "../../providers/kubernetes/connection";
import { type Declarations, type Fleet, readDeclarations, readFleet, STANDARD } from "../fleet/artefact";
import { fetchFleet } from "../fleet/fetch";
import { runFleet } from "../fleet/run";
import type { RequestPath } from "../preview/api";
import type { Report } from "../preview/report";
import { byDifference, counted } from "../preview/wording";
import { visible } from "../text/plain-text";
import { endIfBlocked } from "./blocked";
import { completed, joined, requestsOf } from "./fleet-requests";
import { INSPECTION_HELP, inspect } from "./inspection";
import { allKinds, type KindsOption, kindsOption } from "./kinds-option";
import { conclude, type ReportOptions, withReportOptions } from "./preview";
import { writeOutput } from "./write-output";

/** What `run` and `fetch` write may be long: it is one line. @param said of it, where it does not disturb */
async function save(file: string, value: Fleet | Declarations, said: string): Promise<void> {
  const text = `${JSON.stringify(value)}\n`;
  if (file === STANDARD) process.stdout.write(text);
  else await writeOutput(file, text);
  (file === STANDARD ? process.stderr : process.stdout).write(`${said}\n`);
}

export function fleetCommand(): Command {
  return new Command("fleet")
    .description(
      "show what a changed program would do to all live objects, in three steps: of these, the one that runs the program " +
        "has no token",
    )
    .addHelpText(
      "after",
      `
Examples:
  kindstack fleet fetch --kinds ./main/src --to fleet.json      # with a kubeconfig, and the code that is installed
  kindstack fleet run fleet.json --kinds ./branch/src --to declared.json      # without any credential
  kindstack fleet submit fleet.json declared.json --server https://kindstack.example.com --fail-on replace,delete

Where you trust the code, \`kindstack preview --fleet\` does all of it, and previews Secrets and plugins too.`,
    )
    .addCommand(fetchCommand())
    .addCommand(runCommand())
    .addCommand(submitCommand());
}

type FileOptions = KindsOption & { to: string };

function fetchCommand(): Command {
  return new Command("fetch")
    .description("write all live objects of kinds, and what their programs may read, to a file; no values of Secrets")
    .requiredOption("--to <file>", "the file; - for standard output")
    .option("-n, --namespace <namespace>", "objects in this namespace alone")
    .addOption(kindsOption("kinds as they are installed"))
    .addHelpText(
      "after",
      "\nExample:\n  kindstack fleet fetch --kinds ./src --to fleet.json      # of the target branch",
    )
    .action(async ({ to, namespace, ...kinds }: FileOptions & { namespace?: string }) => {
      const fleet = await withKubernetes((client) => fetchFleet(client, allKinds(kinds), namespace));
      const count = fleet.kinds.reduce((sum, { objects }) => sum + objects.length, 0);
      for (const what of fleet.unchecked) process.stderr.write(`unchecked: ${visible(what)}\n`);
      await save(to, fleet, `${counted(count, "object")} of ${counted(fleet.kinds.length, "kind")}`);
    });
}

function runCommand(): Command {
  return new Command("run")
    .description("run the programs of kinds for what was fetched, each twice, and write what they declare to a file")
    .argument("<file>", "what `kindstack fleet fetch` has written; - for standard input")
    .requiredOption("--to <file>", "the file for the declarations; - for standard output")
    .addOption(kindsOption("kinds whose programs run"))
    .addHelpText(
      "after",
      "\nExample:\n  kindstack fleet run fleet.json --kinds ./src --to declared.json      # of the branch",
    )
    .action(async (file: string, { to, ...kinds }: FileOptions) => {
      using watchdog = endIfBlocked();
      const declarations = await runFleet(await readFleet(file), allKinds(kinds), (what) => watchdog.runs(what));
      const outcomes = Object.entries(Object.groupBy(declarations.objects, ({ outcome }) => outcome.type));
      const counts = outcomes.map(([outcome, objects = []]) => `${objects.length} ${outcome}`);
      await save(to, declarations, counts.join(", ") || "no objects");
    });
}

const PATH = "/v1/fleet" satisfies RequestPath;

function submitCommand(): Command {
  const command = new Command("submit")
    .description("preview what was declared, against the real state: it is compared, and no code of the branch runs")
    .argument("<fleet>", "what `kindstack fleet fetch` has written: all that the report must tell of")
    .argument("<declared>", "what `kindstack fleet run` has written")
    .option(
      "--propose",
      "show the digests of the plans that the operator would make, for `kindstack approve --report`; implies --refresh",
    )
    .option("--report <file>", "also write the report to this file, as JSON, for `kindstack approve --report`");
  return withReportOptions(command)
    .addHelpText(
      "after",
      `
Exit codes: as for \`kindstack preview\`.

Examples:
  kindstack fleet submit fleet.json declared.json --server https://kindstack.example.com --token-file token --fail-on replace,delete
  kindstack fleet submit fleet.json declared.json --propose --report report.json && kindstack approve --report report.json
${INSPECTION_HELP}`,
    )
    .action(async (fetched: string, declared: string, options: ReportOptions & { propose?: true }) => {
      const fleet = await readFleet(fetched);
      const declarations = completed(fleet, await readDeclarations(declared));
      const { refresh, propose, concurrency } = options;
      const asked = { refresh, ...(propose && { propose }) };
      const { objects, providers, notFetched } = declarations;
      // Without an operator there are no limits, and to open the state takes a while.
      const whole = [{ ...asked, objects, providers, notFetched }];
      const requests = options.server === undefined ? whole : requestsOf(declarations, asked);
      const local = () => ({ kinds: allKinds(options), concurrency });
      const pages: Report[] = [];
      for (const request of requests) pages.push(await inspect(PATH, request, options, local));
      const report = byDifference(joined(pages, fleet, declarations));
      await conclude(report, options);
    });
}
