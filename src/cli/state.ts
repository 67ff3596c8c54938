import { Command } from "commander";
import { safeJson } from "../text/plain-text";
import { objectCommand } from "./object-command";

export function stateCommand(): Command {
  const description = "print it as JSON, in the form that `pulumi stack import` takes; secrets stay encrypted";
  return new Command("state").description("look at the state of an object's stack").addCommand(
    objectCommand("export", description, async (reader, stack, signal) => {
      const state = await reader.state(stack, signal);
      return state && safeJson(state);
    }),
  );
}
