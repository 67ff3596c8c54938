import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import Type from "typebox";
import { Compile } from "typebox/compile";
import { TerminalError } from "../../providers/errors";
import { parseJson } from "../text/json";
import { linesOf } from "../text/lines";

/** A backup as one stream, for where there is no shared file system: a line of JSON for each file of the directory. */
const lineValidator = Compile(
  Type.Object({ file: Type.String({ pattern: "^[a-zA-Z0-9._-]{1,120}$" }), content: Type.String() }),
);

export async function writeStream(directory: string, stream: Writable): Promise<void> {
  for (const file of await readdir(directory)) {
    const line = `${JSON.stringify({ file, content: await readFile(join(directory, file), "utf8") })}\n`;
    await new Promise<void>((resolve, reject) => stream.write(line, (error) => (error ? reject(error) : resolve())));
  }
}

/** Reads what `writeStream` wrote into a directory, where a restore checks that it is whole. */
export async function readStream(directory: string, stream: Readable): Promise<void> {
  let number = 0;
  for await (const text of linesOf(stream)) {
    number++;
    const line = parseJson(lineValidator, text);
    if (line === undefined) {
      throw new TerminalError("NoBackup", `line ${number} is not what \`kindstack backup -\` writes`);
    }
    await writeFile(join(directory, line.file), line.content, { mode: 0o600 });
  }
}
