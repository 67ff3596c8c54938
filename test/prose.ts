import ts from "typescript";

/** A piece of text for people, and where it is. */
export interface Passage {
  /** Of its first line, from 1. */
  line: number;
  text: string;
}

/**
 * The prose of a page: paragraphs, headings, list items and table cells, without code, comments and the targets of links.
 * Code within a line is one word, `code`.
 */
export function proseOf(markdown: string): Passage[] {
  const passages: Passage[] = [];
  let open: Passage | undefined;
  let isFenced = false;
  const close = () => {
    if (open !== undefined) passages.push(open);
    open = undefined;
  };
  const lines = markdown.replace(GENERATED_OR_COMMENT, (text) => text.replace(/[^\n]/g, "")).split("\n");
  for (const [index, raw] of lines.entries()) {
    const line = index + 1;
    if (/^\s*```/.test(raw)) {
      isFenced = !isFenced;
      close();
      continue;
    }
    if (isFenced) continue;
    const text = plain(raw);
    if (text === "") close();
    else if (/^\s*\|/.test(raw)) {
      close();
      const cells = text.split("|").map((cell) => cell.trim());
      passages.push(...cells.filter((cell) => /[A-Za-z]/.test(cell)).map((cell) => ({ line, text: cell })));
    } else if (open === undefined || /^\s*([-*]|\d+\.|#+|>)\s/.test(raw)) {
      close();
      open = { line, text: text.replace(/^([-*]|\d+\.|#+|>)\s+/, "") };
      if (raw.startsWith("#")) close();
    } else open.text += ` ${text}`;
  }
  close();
  return passages;
}

/** Tables of figures that a program writes, and comments. */
const GENERATED_OR_COMMENT = /<!-- generated: [\s\S]*?<!-- end of what is generated -->|<!--[\s\S]*?-->/g;

function plain(line: string): string {
  return line
    .replace(/\\\|/g, " ")
    .replace(/`[^`]*`/g, "`code`")
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(/<https?:[^>]*>/g, "`code`")
    .replace(/\*\*|(?<!\w)_|_(?!\w)/g, "")
    .trim();
}

/** What ends with a full stop, a question or an exclamation mark, or with the passage. */
export function sentencesOf(text: string): string[] {
  return text.split(/(?<=[.?!])["')]?\s+(?=[^a-z])/).filter((sentence) => sentence !== "");
}

export function wordsOf(sentence: string): number {
  return sentence.split(/\s+/).filter((word) => /[\p{L}\d]/u.test(word)).length;
}

export function parseModule(source: string): ts.SourceFile {
  return ts.createSourceFile("module.ts", source, ts.ScriptTarget.Latest);
}

/** The texts in a module that hold more than one word: messages, help, descriptions. Placeholders are `…`. */
export function messagesOf(tree: ts.SourceFile): Passage[] {
  const messages: Passage[] = [];
  const visit = (node: ts.Node): void => {
    const text = ts.isStringLiteralLike(node)
      ? node.text
      : ts.isTemplateExpression(node)
        ? node.head.text + node.templateSpans.map(({ literal }) => `…${literal.text}`).join("")
        : "";
    if (/[a-z] [a-z…]/.test(text)) {
      messages.push({ line: tree.getLineAndCharacterOfPosition(node.getStart(tree)).line + 1, text });
    }
    ts.forEachChild(node, visit);
  };
  visit(tree);
  return messages;
}

/** The comments of a module, each as one line. */
export function commentsOf(tree: ts.SourceFile): Passage[] {
  let code = tree.text; // without literals, which may look like comments
  const blank = (node: ts.Node): void => {
    if (ts.isLiteralExpression(node) || ts.isTemplateLiteralToken(node)) {
      const start = node.getStart(tree);
      code = code.slice(0, start) + " ".repeat(node.end - start) + code.slice(node.end);
    }
    ts.forEachChild(node, blank);
  };
  blank(tree);
  return [...code.matchAll(/\/\*[\s\S]*?\*\/|\/\/.*/g)].map(({ 0: comment, index }) => ({
    line: tree.getLineAndCharacterOfPosition(index).line + 1,
    text: comment
      .replace(/^\/\*+|\*\/$|^\s*\*(?!\/)|^\/\//gm, " ")
      .replace(/\s+/g, " ")
      .trim(),
  }));
}
