import { Command } from "commander";
import { safeJson } from "../text/plain-text";
import { objectCommand } from "./object-command";

export function stateCommand(): Command {
  return new Command("state").description("look at the state of an object's stack").addCommand(
    objectCommand({
      name: "export",
      description: "print it as JSON, in the form that `pulumi stack import` takes; secrets stay encrypted",
      local: (inspector, located) => inspector.state(located),
      remote: (inspector, request) => inspector.state(request),
      render: safeJson,
    }),
  );
}
