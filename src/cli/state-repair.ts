import { Command } from "commander";
import type { GoEngine } from "../automation/go-engine";
import { STATES_HELP, withStates } from "./open-stacks";
import { Progress } from "./progress";

const HELP = `
status.stack.name of an object has its stack's name.
${STATES_HELP}`;

/** Removes the locks of a stack. */
export function unlockCommand(): Command {
  return new Command("unlock")
    .description("remove the locks of a stack whose process is gone, such as a `pulumi up` that was killed")
    .argument("<stack>", "name of the stack")
    .addHelpText("after", `\nExample:\n  kindstack state unlock "$(kindstack stack-name tenant.yaml)"\n${HELP}`)
    .action((stack: string) =>
      repair(async (engine, signal) => {
        const locks = await engine.unlock(stack, signal);
        return locks.length === 0 ? [`${stack} is not locked`] : locks.map((lock) => `removed the lock ${lock}`);
      }),
    );
}

/** Takes the protection from resources of a stack, so that they can be deleted. */
export function unprotectCommand(): Command {
  return new Command("unprotect")
    .description("allow the deletion of a stack's protected resources, or of one")
    .argument("<stack>", "name of the stack")
    .argument("[urn]", "the resource (default: all of the stack)")
    .addHelpText("after", `\nExample:\n  kindstack state unprotect "$(kindstack stack-name tenant.yaml)"\n${HELP}`)
    .action((stack: string, urn: string | undefined) =>
      repair(async (engine, signal) => {
        const urns = await engine.unprotect(stack, urn, signal);
        return urns.length === 0 ? ["nothing is protected"] : urns.map((one) => `unprotected ${one}`);
      }),
    );
}

async function repair(work: (engine: GoEngine, signal: AbortSignal) => Promise<string[]>): Promise<void> {
  const lines = await withStates(new Progress(), work);
  process.stdout.write(`${lines.join("\n")}\n`);
}
