/** What went wrong, with the lines of what was found that should not be there, and the reverse. */
export function explain(error: unknown): string {
  const { stack, actual, expected } = error as Error & { actual?: unknown; expected?: unknown };
  const linesOf = (value: unknown) => {
    const text = typeof value === "string" ? value : JSON.stringify(value, null, 1);
    return (text ?? "").split("\n");
  };
  const extra = linesOf(actual).filter((line) => !linesOf(expected).includes(line));
  const missing = linesOf(expected).filter((line) => !linesOf(actual).includes(line));
  return [stack, ...missing.map((line) => `- ${line}`), ...extra.map((line) => `+ ${line}`)].join("\n");
}
