import { Command } from "commander";
import { safeJson } from "../text/plain-text";
import { objectCommand } from "./object-command";

export function stateCommand(): Command {
  return new Command("state")
    .description("print the state of an object's stack")
    .addHelpText("after", "\nExample:\n  kindstack state export tenant.multitenancy acme > acme.json")
    .addCommand(
      objectCommand({
        name: "export",
        usage: "state export",
        description: "print the state of an object's stack, as JSON for `pulumi stack import`; secrets stay encrypted",
        local: (inspector, located) => inspector.state(located),
        remote: (inspector, request) => inspector.state(request),
        render: safeJson,
      }),
    );
}
