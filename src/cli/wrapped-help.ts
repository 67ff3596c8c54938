import { Help, type OutputConfiguration } from "commander";

/** Where the output is no terminal. */
const DEFAULT_WIDTH = 100;
/** A last column that is narrower begins a line of its own. */
const MIN_COLUMN = 30;
const OWN_LINE = 6;
/** What is before the last column of a line, and that column. What a command's comment says stays in its line. */
const COLUMNS = /^(.*\S {2,}| {3,}| {2}(?=[A-Z])|)([^\s#].*)$/;

/** How all commands print their help: no line is wider than the terminal, but for commands, which are to be copied. */
export const HELP_OUTPUT: OutputConfiguration = {
  getOutHelpWidth: helpWidth,
  writeOut: (text) => {
    process.stdout.write(wrapped(text, helpWidth()));
  },
};

function helpWidth(): number {
  return process.stdout.columns ?? DEFAULT_WIDTH;
}

/** A text with its long lines broken: of a line of a table within its last column. */
export function wrapped(text: string, width: number): string {
  const breaker = Object.assign(new Help(), { minWidthToWrap: 1 });
  const wrap = (line: string) => {
    if (line.length <= width) return line;
    const [, first, last] = COLUMNS.exec(line) ?? [];
    if (first === undefined || last === undefined) return line;
    const ownLine = first.trim() !== "" && width - first.length < MIN_COLUMN;
    const indent = ownLine ? OWN_LINE : first.length;
    const lines = breaker.boxWrap(last, width - indent).split("\n");
    const broken = lines.map((part) => " ".repeat(indent) + part);
    return ownLine ? [first.trimEnd(), ...broken].join("\n") : first + broken.join("\n").trimStart();
  };
  return text.split("\n").map(wrap).join("\n");
}
