import { getCompletionScript, getShellFromEnv, log, logFiles, parseEnv, SUPPORTED_SHELLS } from "@pnpm/tabtab";
import { Argument, Command } from "commander";
import { kindName } from "../../stacks/contract/kind";
import { kinds } from "../../stacks/kinds/index";

export function completionCommand(): Command {
  return new Command("completion")
    .description("print a script that completes commands, options and kinds in a shell")
    .addArgument(new Argument("<shell>", "the shell").choices(SUPPORTED_SHELLS))
    .addHelpText(
      "after",
      `
Examples:
  source <(kindstack completion bash)
  kindstack completion zsh > "\${fpath[1]}/_kindstack"
  kindstack completion fish > ~/.config/fish/completions/kindstack.fish
  kindstack completion pwsh >> $PROFILE`,
    )
    .action(async (shell: (typeof SUPPORTED_SHELLS)[number]) => {
      process.stdout.write(await getCompletionScript({ name: "kindstack", completer: "kindstack", shell }));
    });
}

/** Called by the shells' scripts for each completion: prints what can follow the words in the environment. */
export function completionServerCommand(build: (words: readonly string[]) => Promise<Command>): Command {
  return new Command("completion-server").argument("[words...]").action(async () => {
    const [, ...words] = parseEnv(process.env).partial.split(/\s+/);
    const word = words.pop() ?? "";
    const completions = completionsOf(await build(words), words).filter((completion) => completion.startsWith(word));
    if (completions.length === 0) logFiles();
    else log(completions, getShellFromEnv(process.env));
  });
}

/** Completions after the words of a command; none where only the user knows the value, such as a file. */
export function completionsOf(command: Command, words: readonly string[]): string[] {
  const [word, ...rest] = words;
  const child = command.commands.find((child) => child.name() === word);
  if (child !== undefined) return completionsOf(child, rest);

  const help = command.createHelp();
  const options = help.visibleOptions(command);
  const option = options.find(({ long, short }) => words.length > 0 && [long, short].includes(words.at(-1)));
  if (option?.required) return option.argChoices ?? [];
  const completions = [
    ...help.visibleCommands(command).map((child) => child.name()),
    ...command.registeredArguments.flatMap((argument) =>
      argument.name() === "kind" ? kinds.flatMap((kind) => [kind.plural, kindName(kind)]) : (argument.argChoices ?? []),
    ),
    ...options.flatMap(({ long }) => long ?? []),
  ];
  return [...new Set(completions)].sort();
}
