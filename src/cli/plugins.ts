import { Command } from "commander";
import type { Answers } from "../preview/api";
import { pluginsOf } from "../preview/inspect";
import { safeJson } from "../text/plain-text";
import { renderTable } from "../text/table";
import { askOperator } from "./ask-operator";
import { allKinds, type KindsOption, kindsOption } from "./kinds-option";
import { operatorAt, type ServerOptions, withServerOptions } from "./server-options";
import { untilInterrupted } from "./until-interrupted";
import { type OutputFormat, outputOption } from "./write-output";

export function pluginsCommand(): Command {
  const command = new Command("plugins")
    .description("show the resource plugins that kinds need, where they are, and the operator's processes of plugins")
    .addOption(outputOption())
    .addOption(kindsOption("kinds to show, without --server"));
  return withServerOptions(command)
    .addHelpText(
      "after",
      `
Without --server, it shows what the engine would find on this machine. Processes are those of the operator at --server; the
token needs \`list\` on plugins.kindstack.dev.

Examples:
  kindstack plugins --kinds ./dist
  kubectl port-forward -n kindstack-system service/kindstack 9444:previews &
  kindstack plugins --server https://localhost:9444 --server-ca ca.crt`,
    )
    .action(async (options: ServerOptions & KindsOption & { output: OutputFormat }) => {
      const report = await untilInterrupted(async (signal) =>
        options.server === undefined
          ? { kinds: pluginsOf(allKinds(options)) }
          : askOperator(await operatorAt(options, signal), "/v1/plugins", {}),
      );
      process.stdout.write(`${options.output === "json" ? safeJson(report) : renderPlugins(report)}\n`);
    });
}

export function renderPlugins({ kinds, processes }: Answers["/v1/plugins"]): string {
  const needed = kinds.flatMap(({ kind, plugins }) =>
    plugins.map(({ name, version = "any", file, ...of }) => [kind, name, version, of.package, file ?? "missing"]),
  );
  const parts = [
    needed.length === 0
      ? "no kind's package names a plugin"
      : renderTable(["kind", "plugin", "version", "named by", "file"], needed),
  ];
  if (processes?.length === 0) parts.push("no process of a plugin runs");
  else if (processes !== undefined) {
    const rows = processes.map(({ name, version = "", pid, startedAt, updates, memoryBytes, state }) => [
      ...[name, version, pid, `${Math.round((Date.now() - Date.parse(startedAt)) / 1000)} s`, updates],
      ...[`${Math.round(memoryBytes / 2 ** 20)} MiB`, state],
    ]);
    parts.push(renderTable(["process of", "version", "pid", "age", "updates", "memory", "state"], rows));
  }
  return parts.join("\n\n");
}
