import { createInterface } from "node:readline/promises";

interface Terminal {
  input: NodeJS.ReadableStream & { isTTY?: boolean };
  output: NodeJS.WritableStream & { isTTY?: boolean };
}

const TERMINAL: Terminal = { input: process.stdin, output: process.stderr };

/** Asks a question on a terminal; anything but yes is a no. @returns `undefined` where there is no terminal to ask on */
export async function confirm(question: string, { input, output } = TERMINAL): Promise<boolean | undefined> {
  if (!input.isTTY || !output.isTTY) return undefined;
  const lines = createInterface({ input, output });
  try {
    const closed = new Promise<string>((resolve) => lines.once("close", () => resolve("")));
    return /^y(?:es)?$/i.test((await Promise.race([lines.question(`${question} [y/N] `), closed])).trim());
  } finally {
    lines.close();
  }
}
