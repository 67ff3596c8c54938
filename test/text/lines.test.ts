import { PassThrough } from "node:stream";
import { setImmediate } from "node:timers/promises";
import { expect, it } from "vitest";
import { readLines } from "../../src/text/lines";

async function linesOf(chunks: readonly (string | Uint8Array)[]): Promise<string[]> {
  const stream = new PassThrough();
  const lines: string[] = [];
  readLines(stream, (line) => lines.push(line));
  for (const chunk of chunks) {
    stream.write(chunk);
    await setImmediate();
  }
  return lines;
}

it("ends a line at a line feed alone, whatever else separates lines elsewhere", async () => {
  const value = "a\u2028b\u2029c\rd\u0085e\vf";
  expect(await linesOf([`${value}\n${value}\n`])).toEqual([value, value]);
});

it("puts a line together that comes in parts, also in the middle of a character", async () => {
  const bytes = Buffer.from("{ü}\n{}\n");
  expect(await linesOf([bytes.subarray(0, 2), bytes.subarray(2, 5), bytes.subarray(5)])).toEqual(["{ü}", "{}"]);
});

it("leaves out what has no end", async () => {
  expect(await linesOf(["whole\n", "not "])).toEqual(["whole"]);
});
