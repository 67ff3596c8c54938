import fs from "node:fs";

const POLL_MS = 200;

/** Passes on what a file holds and what is appended to it. */
export function followFile(file: string, pass: (bytes: Buffer) => void): () => void {
  const descriptor = fs.openSync(file, "r");
  const buffer = Buffer.alloc(65_536);
  const read = () => {
    for (;;) {
      const length = fs.readSync(descriptor, buffer);
      if (length === 0) return;
      pass(Buffer.from(buffer.subarray(0, length)));
    }
  };
  // Polls, since watching is not reliable on every file system, and a terminal can wait.
  const timer = setInterval(read, POLL_MS);
  return () => {
    clearInterval(timer);
    read();
    fs.closeSync(descriptor);
  };
}
