import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { Command, InvalidArgumentError } from "commander";
import { parse } from "yaml";
import { errorMessageOf } from "../../providers/errors";
import { withKubernetes } from "../../providers/kubernetes/connection";
import { shortened } from "../../providers/shortened";
import type { AnyKind } from "../../stacks/contract/kind";
import { kinds as builtInKinds } from "../../stacks/kinds/index";
import { type Configuration, keySchemas } from "../../stacks/platform/configuration";
import { requireTables, withLoadedKinds } from "../../stacks/platform/kinds";
import { parseConfiguration } from "../../stacks/platform/parse-configuration";
import { packageRoot, packageVersion } from "../package";
import { renderTable } from "../text/table";
import { type KindsOption, kindsOption } from "./kinds-option";
import { printYaml } from "./write-output";

interface InstallOptions extends KindsOption {
  print: boolean;
  check: boolean;
  chart?: string;
  values: Record<string, string>;
  set?: Record<string, string>;
}

/** Keys of `pulumi up` only: this command always prints the installation and nothing else. */
const PULUMI_KEYS = ["install", "manifests"];

export function installCommand(): Command {
  return new Command("install")
    .description("print or check the manifests that install the operator")
    .option("--print", "print them as YAML, for kubectl", false)
    .option(
      "--check",
      "report what the current cluster lacks for them or has lost of them; exit code 1 if anything",
      false,
    )
    .option("--chart <folder>", "write a Helm chart of them; keys that decide which objects exist are fixed in it")
    .option("--values <file>", "a YAML file with keys of the configuration", readValues, {})
    .addOption(kindsOption("kinds to install, in place of the key kinds"))
    .option("--set <key=value>", "a key of the configuration, over the file's; may be repeated", keyValue)
    .addHelpText("after", () => `\nConfiguration:\n${configurationTable()}\n\n${EXAMPLE}`)
    .action(async ({ print, check, chart, values, set = {}, kinds: option }: InstallOptions, command: Command) => {
      if (!print && !check && chart === undefined) command.error("error: --print, --check or --chart is needed");
      const parsed = parseConfiguration({ ...values, ...set }, packageVersion);
      const { kinds, configuration } = withLoadedKinds({ ...parsed, kinds: [...(option?.words ?? parsed.kinds)] });
      requireTables(configuration, kinds);
      if (check) await checkCluster(configuration, kinds);
      if (chart !== undefined) await writeChart(chart, configuration, kinds);
      if (!print) return;
      const { platformManifests } = await import("../../stacks/platform/manifests.js");
      printYaml(await platformManifests(configuration, kinds));
    });
}

const EXAMPLE = `Examples:
  kindstack install --check --values values.yaml
  kindstack install --print --values values.yaml | kubectl apply --server-side -f -
  kindstack install --print --set postgresTables=students,team-a=app.* | kubectl apply --server-side -f -`;

async function checkCluster(configuration: Configuration, kinds: readonly AnyKind[]): Promise<void> {
  const { missingPrerequisites } = await import("../../stacks/platform/prerequisites.js");
  const { lostPolicies } = await import("../../stacks/platform/lost-policies.js");
  const problems = await withKubernetes(async (client) => {
    await client.json("GET", "/version"); // a cluster that cannot be reached was not checked
    const missing = await missingPrerequisites(configuration, kinds, client);
    return [...missing, ...(await lostPolicies(configuration, kinds, client))];
  });
  if (problems.length > 0) throw new Error(problems.join("\n"));
}

/** Writes the chart into a new or empty folder: no file of another version stays there. */
async function writeChart(folder: string, configuration: Configuration, kinds: readonly AnyKind[]): Promise<void> {
  const { chartFiles } = await import("../../stacks/platform/chart.js");
  // The value `kinds` may choose others later.
  const files = chartFiles(configuration, [...new Set([...builtInKinds, ...kinds])], packageVersion);
  mkdirSync(folder, { recursive: true });
  if (readdirSync(folder).length > 0) throw new Error(`--chart: ${folder} is not empty`);
  cpSync(path.join(packageRoot, "stacks/platform/chart"), folder, { recursive: true });
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
    writeFileSync(path.join(folder, name), text);
  }
}

/** The keys of a file as texts, the form that the configuration is parsed from. */
function readValues(file: string): Record<string, string> {
  let parsed: unknown;
  try {
    parsed = parse(readFileSync(file, "utf8"));
  } catch (error) {
    throw new InvalidArgumentError(errorMessageOf(error));
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) {
    throw new InvalidArgumentError("it must hold a map of keys and values.");
  }
  const values = Object.entries(parsed).filter(([, value]) => value !== null);
  for (const [key] of values) refusePulumiKey(key);
  return Object.fromEntries(values.map(([key, value]) => [key, asText(value)]));
}

function asText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function refusePulumiKey(key: string): void {
  if (PULUMI_KEYS.includes(key)) throw new InvalidArgumentError(`${key} is for \`pulumi up\`.`);
}

/** A longer default is in values.yaml of the chart. */
const MAX_DEFAULT = 30;

function configurationTable(): string {
  const keys = [...keySchemas].filter(([key]) => !PULUMI_KEYS.includes(key));
  const rows = keys.map(([key, { default: value = "-", description }]) => [
    key,
    shortened(asText(value), MAX_DEFAULT),
    description,
  ]);
  return renderTable(["key", "default", "meaning"], rows);
}

function keyValue(text: string, others: Record<string, string> = {}): Record<string, string> {
  const [key = "", ...rest] = text.split("=");
  if (rest.length === 0) throw new InvalidArgumentError("it must be key=value.");
  refusePulumiKey(key);
  return { ...others, [key]: rest.join("=") };
}
