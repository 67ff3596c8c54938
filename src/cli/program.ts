import { Command, CommanderError } from "commander";
import { errorMessageOf } from "../../providers/errors";
import { withoutPasswords } from "../../providers/passwords";
import { packageVersion } from "../package";
import { visibleLines } from "../text/plain-text";
import { HELP_OUTPUT } from "./wrapped-help";

/** 0: done. 1: failed. 2: wrong usage. */
type ExitCode = 0 | 1 | 2;

/** One module for each command: loading all of them takes longer than most commands run. */
const COMMANDS = {
  dev: async () => (await import("./dev.js")).devCommand(),
  run: async () => (await import("./run.js")).runCommand(),
  proxy: async () => (await import("./proxy.js")).proxyCommand(),
  crds: async () => (await import("./crds.js")).crdsCommand(),
  docs: async () => (await import("./docs.js")).docsCommand(),
  preview: async () => (await import("./preview.js")).previewCommand(),
  fleet: async () => (await import("./fleet.js")).fleetCommand(),
  plans: async () => (await import("./plans.js")).plansCommand(),
  plan: async () => (await import("./plans.js")).planCommand(),
  approve: async () => (await import("./approve.js")).approveCommand(),
  reject: async () => (await import("./approve.js")).rejectCommand(),
  status: async () => (await import("./status.js")).statusCommand(),
  plugins: async () => (await import("./plugins.js")).pluginsCommand(),
  diff: async () => (await import("./diff.js")).diffCommand(),
  history: async () => (await import("./object-commands.js")).historyCommand(),
  outputs: async () => (await import("./object-commands.js")).outputsCommand(),
  state: async () => (await import("./object-commands.js")).stateCommand(),
  stacks: async () => (await import("./stacks.js")).stacksCommand(),
  backup: async () => (await import("./backup.js")).backupCommand(),
  restore: async () => (await import("./backup.js")).restoreCommand(),
  install: async () => (await import("./install.js")).installCommand(),
  "stack-name": async () => (await import("./stack-name.js")).stackNameCommand(),
  new: async () => (await import("./new.js")).newCommand(),
  completion: async () => (await import("./completion.js")).completionCommand(),
};

/**
 * The command line.
 *
 * @param words what follows the program's name; without the name of a command, all commands are loaded
 */
export async function buildProgram(words: readonly string[] = []): Promise<Command> {
  const program = new Command("kindstack")
    .description("A Kubernetes operator in which a custom resource is a Pulumi stack.")
    .version(packageVersion)
    .enablePositionalOptions() // what follows a subcommand's name is the subcommand's
    .configureOutput(HELP_OUTPUT)
    .showHelpAfterError("(add --help for the usage)")
    .addHelpText(
      "after",
      `
Examples:
  kindstack dev                        # a cluster, a database and the operator on this machine
  kindstack run --install-crds         # the operator, against the current cluster
  kindstack preview -f manifests/      # what files would change

Exit codes: 0 done, 1 failed, 2 wrong usage. KINDSTACK_DEBUG=1 prints the stack trace of an error.`,
    );
  const [name = ""] = words;
  if (Object.hasOwn(COMMANDS, name)) {
    program.addCommand(await COMMANDS[name as keyof typeof COMMANDS]());
  } else if (name === "completion-server") {
    program.addCommand((await import("./completion.js")).completionServerCommand(buildProgram));
  } else {
    for (const load of Object.values(COMMANDS)) program.addCommand(await load());
  }
  throwInsteadOfExit(program, program);
  return program;
}

export async function runCommand(words: readonly string[], program?: Command): Promise<ExitCode> {
  try {
    await (program ?? (await buildProgram(words))).parseAsync(words, { from: "user" });
    return 0;
  } catch (error) {
    if (error instanceof CommanderError) {
      // Commander has printed its message. Requested help is not an error.
      return error.code === "commander.helpDisplayed" || error.code === "commander.version" ? 0 : 2;
    }
    // The message may quote files, objects and servers' answers.
    process.stderr.write(`kindstack: ${visibleLines(withoutPasswords(errorMessageOf(error)))}\n`);
    if (process.env.KINDSTACK_DEBUG === "1" && error instanceof Error) {
      process.stderr.write(`${visibleLines(withoutPasswords(error.stack ?? ""))}\n`);
    }
    return 1;
  }
}

/** A command that was built before it was added inherits no settings. */
function throwInsteadOfExit(command: Command, parent: Command): void {
  command.copyInheritedSettings(parent).exitOverride();
  for (const child of command.commands) throwInsteadOfExit(child, command);
}
