import fs from "node:fs";
import path from "node:path";
import { Readable, Writable } from "node:stream";
import { describe, expect, it } from "vitest";
import { readStream, writeStream } from "../../src/backup/stream";
import { useDirectory } from "../directories";

const home = useDirectory();
const folder = (name: string) => fs.mkdtempSync(path.join(home, name));

describe("a backup as a stream", () => {
  it("has all files as they are", async () => {
    const [from, to] = [folder("from"), folder("to")];
    const files = { "backup.json": '{"stacks":{}}', "stack.a.json": 'lines\nand "quotes", ü and \u2028\n' };
    for (const [name, text] of Object.entries(files)) fs.writeFileSync(path.join(from, name), text);
    let text = "";
    const stream = new Writable({
      write(chunk, _encoding, done) {
        text += chunk;
        done();
      },
    });

    await writeStream(from, stream);
    await readStream(to, Readable.from([text]));

    for (const [name, content] of Object.entries(files)) {
      expect(fs.readFileSync(path.join(to, name), "utf8")).toBe(content);
    }
  });

  it.each(["no JSON", '{"file":"../../etc/passwd","content":""}', '{"file":"a"}'])("is not %s", async (line) => {
    const to = folder("refused");
    await expect(readStream(to, Readable.from([line]))).rejects.toThrow(
      "line 1 is not what `kindstack backup -` writes",
    );
    expect(fs.readdirSync(to)).toEqual([]);
  });
});
