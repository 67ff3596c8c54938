import { Argument, Command } from "commander";
import { kindName } from "../../stacks/contract/kind";
import { kinds } from "../../stacks/index";

/** What may follow the words of a command. */
interface Completions {
  /** The words that lead to the command, from the program's name on: `kindstack dev stop`. */
  path: string;
  words: string[];
}

const SHELLS = { bash, zsh, fish };

export function completionCommand(program: Command): Command {
  return new Command("completion")
    .description("print a script that completes commands, options and kinds in a shell")
    .addArgument(new Argument("<shell>", "the shell").choices(Object.keys(SHELLS)))
    .addHelpText(
      "after",
      `
Examples:
  source <(kindstack completion bash)
  kindstack completion zsh > "\${fpath[1]}/_kindstack"
  kindstack completion fish > ~/.config/fish/completions/kindstack.fish`,
    )
    .action((shell: keyof typeof SHELLS) => {
      process.stdout.write(SHELLS[shell](completionsOf(program)));
    });
}

/** Every command of a tree with what can follow it. Where a file can, the shell itself offers files. */
export function completionsOf(command: Command, parents: readonly string[] = []): Completions[] {
  const path = [...parents, command.name()];
  const options = command.createHelp().visibleOptions(command);
  const words = [
    ...command.commands.map((child) => child.name()),
    ...command.registeredArguments.flatMap((argument) =>
      argument.name() === "kind" ? kinds.flatMap((kind) => [kind.plural, kindName(kind)]) : (argument.argChoices ?? []),
    ),
    ...options.flatMap(({ long, argChoices }) => [...(long ? [long] : []), ...(argChoices ?? [])]),
  ];
  return [
    { path: path.join(" "), words: [...new Set(words)].sort() },
    ...command.commands.flatMap((child) => completionsOf(child, path)),
  ];
}

// Names of commands, options and kinds need no quoting in any shell: letters, digits, dots and dashes.

function bash(completions: readonly Completions[]): string {
  return `# kindstack completion for bash
_kindstack() {
  local path=kindstack word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$path $word" in
      ${pathsOf(completions).join(" | ")}) path="$path $word" ;;
    esac
  done
  local words=
  case "$path" in
${completions.map(({ path, words }) => `    "${path}") words="${words.join(" ")}" ;;`).join("\n")}
  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _kindstack kindstack
`;
}

function zsh(completions: readonly Completions[]): string {
  return `#compdef kindstack
# kindstack completion for zsh
_kindstack() {
  local path_=kindstack word
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "$path_ $word" in
      ${pathsOf(completions).join(" | ")}) path_="$path_ $word" ;;
    esac
  done
  local -a candidates
  case "$path_" in
${completions.map(({ path, words }) => `    "${path}") candidates=(${words.join(" ")}) ;;`).join("\n")}
  esac
  compadd -a candidates
  _files
}
if [ "$funcstack[1]" = _kindstack ]; then _kindstack "$@"; else compdef _kindstack kindstack; fi
`;
}

function fish(completions: readonly Completions[]): string {
  return `# kindstack completion for fish
function __kindstack_words
  set -l path kindstack
  for word in (commandline -opc)[2..-1]
    switch "$path $word"
      case ${pathsOf(completions).join(" ")}
        set path "$path $word"
    end
  end
  switch $path
${completions.map(({ path, words }) => `    case "${path}"\n      string split " " "${words.join(" ")}"`).join("\n")}
  end
end
complete -c kindstack -a "(__kindstack_words)"
`;
}

/** The paths of all commands below the program, quoted. */
function pathsOf(completions: readonly Completions[]): string[] {
  return completions.filter(({ path }) => path.includes(" ")).map(({ path }) => `"${path}"`);
}
