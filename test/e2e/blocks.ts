import fs from "node:fs";
import path from "node:path";

const ROOT = path.resolve(__dirname, "../..");

/** A fenced block of a page. */
export interface Block {
  line: number;
  /** The heading that it stands under, of the second level. */
  section: string;
  /** The heading of any level. */
  heading: string;
  language: string;
  text: string;
  /** The file that it is the content of, as a paragraph directly above says. */
  file: string | undefined;
  /** Why its commands cannot be run by a test, as a comment directly above says. */
  notRun: string | undefined;
}

/** The fenced blocks of a page, in order. @param page relative to the repository */
export function blocksOf(page: string): Block[] {
  const lines = fs.readFileSync(path.join(ROOT, page), "utf8").split("\n");
  const blocks: Block[] = [];
  let section = "";
  let heading = "";
  for (let start = 0; start < lines.length; start++) {
    section = /^## (.+)$/.exec(lines[start] ?? "")?.[1] ?? section;
    heading = /^##+ (.+)$/.exec(lines[start] ?? "")?.[1] ?? heading;
    const language = /^```(\S*)$/.exec(lines[start] ?? "")?.[1];
    if (language === undefined) continue;
    const end = lines.indexOf("```", start + 1);
    if (end < 0) throw new Error(`${page}:${start + 1}: the block has no end`);
    const above =
      lines
        .slice(0, start)
        .reverse()
        .find((line) => line !== "") ?? "";
    blocks.push({
      line: start + 1,
      section,
      heading,
      language,
      text: `${lines.slice(start + 1, end).join("\n")}\n`,
      file: /^`([^` ]+)`$/.exec(above)?.[1],
      notRun: /^<!-- not run: (.+) -->$/.exec(above)?.[1],
    });
    start = end;
  }
  return blocks;
}
