/** One word for a POSIX shell, whatever is in it. */
export function quoteForShell(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}

/** The same, in quotes only where they are needed. */
export function shellWord(word: string): string {
  return /^[\w./-]+$/.test(word) ? word : quoteForShell(word);
}
