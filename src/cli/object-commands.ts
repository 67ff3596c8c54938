import { Command } from "commander";
import { kubeconfigNamespace } from "../../providers/kubernetes/connection";
import { describeUpdate, durationOf } from "../automation/planned-changes";
import type { Answers } from "../preview/api";
import { safeJson, shortValue } from "../text/plain-text";
import { renderTable } from "../text/table";
import { INSPECTION_HELP, inspect } from "./inspection";
import { KIND_HELP, type KindsOption, kindsOption, kindsWith } from "./kinds-option";
import { type ServerOptions, withServerOptions } from "./server-options";
import { claimCommand } from "./state-claim";
import { unlockCommand, unprotectCommand } from "./state-repair";
import { resolveCommand } from "./state-resolve";
import { type OutputFormat, outputOption } from "./write-output";

const SHOWN_CHANGES = 3;

export function historyCommand(): Command {
  return objectCommand({
    usage: "history",
    description: "show the updates of an object's stack, newest first",
    path: "/v1/history",
    table: historyTable,
  });
}

export function outputsCommand(): Command {
  return objectCommand({
    usage: "outputs",
    description: "show the resources of an object and their outputs, from the state",
    path: "/v1/outputs",
    table: outputsTable,
  });
}

export function stateCommand(): Command {
  return new Command("state")
    .description("print the state of an object's stack, or repair it")
    .addHelpText("after", "\nExample:\n  kindstack state export tenant.multitenancy acme > acme.json")
    .addCommand(
      objectCommand({
        usage: "state export",
        description: "print the state of an object's stack, as JSON for `pulumi stack import`; secrets stay encrypted",
        path: "/v1/state",
      }),
    )
    .addCommand(claimCommand())
    .addCommand(unlockCommand())
    .addCommand(unprotectCommand())
    .addCommand(resolveCommand());
}

interface ObjectOptions extends ServerOptions, KindsOption {
  namespace?: string;
  output?: OutputFormat;
}

function objectCommand<P extends "/v1/history" | "/v1/outputs" | "/v1/state">({
  usage,
  description,
  path,
  table,
}: {
  /** The command with its parents. */
  usage: string;
  description: string;
  path: P;
  /** What is printed unless JSON is asked for; without, the command prints JSON alone. */
  table?(value: Answers[P]): string;
}): Command {
  const command = new Command(usage.split(" ").at(-1))
    .description(description)
    .argument("<kind>", KIND_HELP)
    .argument("<name>", "the object's name")
    .option("-n, --namespace <namespace>", "the object's namespace (default: the kubeconfig's)")
    .addOption(kindsOption("kinds to choose from"));
  if (table !== undefined) command.addOption(outputOption());
  return withServerOptions(command)
    .addHelpText("after", `\nExample:\n  kindstack ${usage} tenant.multitenancy acme\n${INSPECTION_HELP}`)
    .action(async (kind: string, name: string, options: ObjectOptions) => {
      const object = { kind, name, namespace: options.namespace ?? kubeconfigNamespace() };
      const value = await inspect(path, object, options, () => ({ kinds: kindsWith(command, options, kind) }));
      process.stdout.write(`${(options.output === "text" && table ? table : safeJson)(value)}\n`);
    });
}

function historyTable(updates: Answers["/v1/history"]): string {
  const rows = updates.map((update) => {
    const { startTime, kind, result } = update;
    return [startTime, durationOf(update) ?? "", kind, result, describeUpdate(update, SHOWN_CHANGES).join("; ")];
  });
  return renderTable(["started", "took", "operation", "result", "changes"], rows);
}

function outputsTable(resources: Answers["/v1/outputs"]): string {
  const rows = resources.map(({ type, name, id, outputs }) => {
    const shown = Object.entries(outputs).filter(([property]) => property !== "manifest"); // long, and in the cluster
    return [type, name, id, shown.map(([property, value]) => `${property}=${shortValue(value, 40)}`).join(" ")];
  });
  return renderTable(["type", "name", "id", "outputs"], rows);
}
