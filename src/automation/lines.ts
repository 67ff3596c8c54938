import type { Readable } from "node:stream";

/**
 * Hands over each line of a stream of text. A line ends with a line feed and nothing else: the lines of `node:readline` also end
 * at U+2028 and U+2029, which the strings of a JSON value may have.
 */
export function readLines(stream: Readable, onLine: (line: string) => void): void {
  let begun = "";
  stream.setEncoding("utf8").on("data", (chunk: string) => {
    if (!chunk.includes("\n")) {
      begun += chunk;
      return;
    }
    const lines = (begun + chunk).split("\n");
    begun = lines.pop() ?? "";
    for (const line of lines) onLine(line);
  });
}
