import fs from "node:fs";
import path from "node:path";

const ROOT = path.resolve(__dirname, "../..");

/** The blocks of a page in a language that contain a text, joined. @throws Error when there is none */
export function blocksOf(page: string, language: string, containing: string): string {
  const text = fs.readFileSync(path.join(ROOT, "docs", page), "utf8");
  const blocks = [...text.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, "gms"))].map(
    ([, block = ""]) => block,
  );
  const found = blocks.filter((block) => block.includes(containing));
  if (found.length === 0) throw new Error(`docs/${page} has no ${language} with ${containing}`);
  return found.join("");
}
