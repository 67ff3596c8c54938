import { Command } from "commander";
import { safeJson } from "../preview/plain-text";
import { INSPECTION_HELP, withInspection } from "./inspection";
import { KIND_HELP, kindArgument, namedObject, namespaceOption } from "./object-argument";

export function stateCommand(): Command {
  const command = new Command("state").description("look at the state of an object's stack");
  const exportCommand = command
    .command("export")
    .description("print the state as JSON, in the form that `pulumi stack import` takes; secrets stay encrypted")
    .argument("<kind>", KIND_HELP)
    .argument("<name>")
    .addOption(namespaceOption())
    .addHelpText("after", INSPECTION_HELP)
    .action(async (word: string, name: string, options: { namespace?: string }) => {
      const kind = kindArgument(exportCommand, word);
      await withInspection(async ({ reader, namespace, signal }) => {
        const object = namedObject(kind, name, options.namespace ?? namespace);
        const state = await reader.state(object.stack, signal);
        if (state === undefined) throw new Error(`${kind.kind} ${name} has no stack (${object.stack})`);
        process.stdout.write(`${safeJson(state)}\n`);
      });
    });
  return command;
}
