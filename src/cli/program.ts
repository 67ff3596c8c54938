import { Command, CommanderError } from "commander";
import { errorMessageOf } from "../../providers/errors";
import { packageVersion } from "../package";
import { visibleLines } from "../text/plain-text";
import { backupCommand, restoreCommand } from "./backup";
import { completionCommand } from "./completion";
import { crdsCommand } from "./crds";
import { devCommand } from "./dev";
import { diffCommand } from "./diff";
import { historyCommand } from "./history";
import { installCommand } from "./install";
import { newCommand } from "./new";
import { outputsCommand } from "./outputs";
import { previewCommand } from "./preview";
import { proxyCommand } from "./proxy";
import { runCommand } from "./run";
import { stackNameCommand } from "./stack-name";
import { stateCommand } from "./state";
import { statusCommand } from "./status";

/** 0: done. 1: failed. 2: wrong usage. */
export type ExitCode = 0 | 1 | 2;

/** The command line; one file for each command. */
export function buildProgram(): Command {
  const program = new Command("kindstack")
    .description("A Kubernetes operator in which a custom resource is a Pulumi stack.")
    .version(packageVersion())
    .enablePositionalOptions() // what follows a subcommand's name is the subcommand's
    .showHelpAfterError("(add --help for the usage)")
    .addHelpText(
      "after",
      `
Examples:
  kindstack dev                        # a cluster, a database and the operator on this machine
  kindstack run --install-crds         # the operator, against the current cluster
  kindstack preview -f manifests/      # what files would change

Exit codes: 0 done, 1 failed, 2 wrong usage. KINDSTACK_DEBUG=1 prints the stack trace of an error.`,
    )
    .addCommand(devCommand())
    .addCommand(runCommand())
    .addCommand(proxyCommand())
    .addCommand(crdsCommand())
    .addCommand(previewCommand())
    .addCommand(statusCommand())
    .addCommand(diffCommand())
    .addCommand(historyCommand())
    .addCommand(outputsCommand())
    .addCommand(stateCommand())
    .addCommand(backupCommand())
    .addCommand(restoreCommand())
    .addCommand(installCommand())
    .addCommand(stackNameCommand())
    .addCommand(newCommand());
  program.addCommand(completionCommand(program));
  throwInsteadOfExit(program, program);
  return program;
}

/**
 * Runs one command to its end.
 *
 * @param words what follows the program's name
 */
export async function runProgram(words: readonly string[], program = buildProgram()): Promise<ExitCode> {
  try {
    await program.parseAsync(words, { from: "user" });
    return 0;
  } catch (error) {
    if (error instanceof CommanderError) {
      // It has printed what it wanted to say. Help that was asked for is no error.
      return error.code === "commander.helpDisplayed" || error.code === "commander.version" ? 0 : 2;
    }
    // It may quote files, objects and servers' answers.
    process.stderr.write(`kindstack: ${visibleLines(errorMessageOf(error))}\n`);
    if (process.env.KINDSTACK_DEBUG === "1" && error instanceof Error) {
      process.stderr.write(`${visibleLines(error.stack ?? "")}\n`);
    }
    return 1;
  }
}

/** A command that was added ready-made inherits nothing by itself. */
function throwInsteadOfExit(command: Command, parent: Command): void {
  command.copyInheritedSettings(parent).exitOverride();
  for (const child of command.commands) throwInsteadOfExit(child, command);
}
