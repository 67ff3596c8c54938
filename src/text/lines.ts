import type { Readable } from "node:stream";

/**
 * Puts lines together from text that comes in parts. A line ends with a line feed and nothing else: the lines of `node:readline`
 * also end at U+2028 and U+2029, which the strings of a JSON value may have.
 */
export function lineSplitter(): (part: string) => string[] {
  let begun = "";
  return (part) => {
    begun += part;
    if (!part.includes("\n")) return []; // a long line is searched once
    const lines = begun.split("\n");
    begun = lines.pop() ?? "";
    return lines;
  };
}

/** Hands over each line of a stream of text. */
export function readLines(stream: Readable, onLine: (line: string) => void): void {
  const linesIn = lineSplitter();
  stream.setEncoding("utf8").on("data", (part: string) => {
    for (const line of linesIn(part)) onLine(line);
  });
}

/** The lines of a stream of text; the last one need not end. */
export async function* linesOf(stream: Readable): AsyncGenerator<string> {
  const linesIn = lineSplitter();
  for await (const part of stream.setEncoding("utf8")) yield* linesIn(part as string);
  yield* linesIn("\n").filter((rest) => rest !== "");
}
