import fs from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { filesUnder } from "./files";
import { commentsOf, messagesOf, type Passage, parseModule, proseOf, sentencesOf, wordsOf } from "./prose";

const ROOT = path.resolve(__dirname, "..");
const MAX_WORDS = 30;
const PAGES = ["README.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md", ...markdownIn("docs")];
/** Words with a plain technical term; see "Language" in CONTRIBUTING.md. Relative clauses and phrases are no such words. */
const AVOIDED = new RegExp(
  `\\b(${[
    "nobody",
    "somebody",
    "whoever",
    "anew",
    "(put|puts|putting) right",
    "(let|lets|letting) go( of)?",
    "mended",
  ].join("|")})\\b`,
  "gi",
);

it.each(PAGES)("a page is plain English, in sentences of at most 30 words: %s", (page) => {
  const prose = proseOf(fs.readFileSync(path.join(ROOT, page), "utf8"));
  expect([...prose.flatMap(longSentences), ...prose.flatMap(avoidedWords)]).toEqual([]);
});

it.each([...foldersIn("src"), "providers", "stacks", "bench"])(
  "messages and comments are plain English: %s",
  (folder) => {
    const found = filesUnder(path.join(ROOT, folder))
      .filter((file) => file.endsWith(".ts"))
      .flatMap((file) => {
        const module = parseModule(fs.readFileSync(file, "utf8"));
        return [...messagesOf(module), ...commentsOf(module)]
          .flatMap(avoidedWords)
          .map((found) => `${path.relative(ROOT, file)}:${found}`);
      });
    expect(found).toEqual([]);
  },
);

function markdownIn(folder: string): string[] {
  const files = fs.readdirSync(path.join(ROOT, folder)).filter((file) => file.endsWith(".md"));
  return files.map((file) => `${folder}/${file}`);
}

function foldersIn(folder: string): string[] {
  const entries = fs.readdirSync(path.join(ROOT, folder), { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => `${folder}/${name}`);
}

function longSentences({ line, text }: Passage): string[] {
  if (text.startsWith("On this page:")) return []; // a list, in one paragraph
  return sentencesOf(text)
    .filter((sentence) => wordsOf(sentence) > MAX_WORDS)
    .map((sentence) => `${line}: ${wordsOf(sentence)} words: ${sentence}`);
}

function avoidedWords({ line, text }: Passage): string[] {
  return [...text.matchAll(AVOIDED)].map(([word]) => `${line}: "${word}" in: ${text.slice(0, 80)}`);
}
