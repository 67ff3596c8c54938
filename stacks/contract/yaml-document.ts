import {
  type Alias,
  Composer,
  type CST,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  Lexer,
  type Node,
  Parser,
  type Scalar,
  type YAMLMap,
} from "yaml";
import { isRecord } from "../../providers/kubernetes/field-path";
import { numberOf, readPlain } from "./yaml-scalar";

/*
 * One document of YAML as Kubernetes' tools read it: go-yaml with YAML 1.1, and what JSON can hold of it. What they read in another
 * way than a person or the YAML library does is refused by name, so that what is read here is what is applied.
 */

/** No Kubernetes object is nested as deep as this; a reader may recurse for each level. */
export const MAX_DEPTH = 200;

/** Why a document is refused, and where: the offset in its text. Of what the document holds nothing is quoted. */
export class YamlProblem extends Error {
  constructor(
    message: string,
    readonly offset: number,
  ) {
    super(message);
  }
}

/** What go-yaml takes for no character of a text, or for the end of a line and so of a comment. */
const UNPRINTABLE = /[^\t\n\x20-\x7E\xA0-\u2027\u202A-\uD7FF\uE000-\uFEFE\uFF00-\uFFFD\u{10000}-\u{10FFFF}]/u;
const LINE_ENDS: Readonly<Record<string, string>> = {
  "\r": "a carriage return within a line",
  "\u0085": "U+0085, at which other readers end a line",
  "\u2028": "U+2028, at which other readers end a line",
  "\u2029": "U+2029, at which other readers end a line",
};
const DIRECTIVE = /^%/m;
const DOCUMENT_END = /^\.\.\.(?=\s)/m;

const OPTIONS = { version: "1.1", schema: "failsafe", uniqueKeys: false, merge: false, prettyErrors: false } as const;

/** @throws YamlProblem */
export function readYamlDocument(text: string): unknown {
  const character = UNPRINTABLE.exec(text);
  if (character !== null) {
    const what = LINE_ENDS[character[0]] ?? "a control character or a byte-order mark";
    throw new YamlProblem(`${what}: write it as an escape in double quotes`, character.index);
  }
  const directive = DIRECTIVE.exec(text);
  if (directive !== null) throw new YamlProblem("a directive, such as %YAML: leave it out", directive.index);
  const end = DOCUMENT_END.exec(text);
  if (end !== null && holdsContent(text.slice(end.index + 3))) throw new YamlProblem(SECOND_DOCUMENT, end.index);
  const tokens = tokensOf(text);
  const documents = [...new Composer(OPTIONS).compose(tokens)];
  const [document] = documents;
  const [problem] = documents.flatMap(({ errors, warnings }) => [...errors, ...warnings]);
  if (problem !== undefined) throw new YamlProblem(wordsOf(problem.message), problem.pos[0]);
  if (documents.length > 1) throw new YamlProblem(SECOND_DOCUMENT, documents[1]?.range[0] ?? 0);
  return document?.contents ? new Reader(text).read(document.contents) : null;
}

/** kubectl passes over it. */
const SECOND_DOCUMENT = "another document after the end of this one: use --- between documents";

function holdsContent(text: string): boolean {
  return text.split("\n").some((line) => !/^[ \t]*(?:#|$)/.test(line));
}

/** What is wrong, without what the document holds: it may be no manifest at all. */
function wordsOf(message: string): string {
  const [words = ""] = message.split(/ at line \d|: |\n/);
  return words.replace(/ ?("[\s\S]*"|'[\s\S]*'|<[\s\S]*>)/g, "").replace(/^./, (letter) => letter.toLowerCase());
}

/** Ends before the parser's stack is deep: what reads the tokens next recurses. */
function tokensOf(text: string): CST.Token[] {
  const parser = new Parser();
  const tokens: CST.Token[] = [];
  const add = (token: CST.Token) => {
    if (token.type === "error") throw new YamlProblem(wordsOf(token.message), token.offset);
    tokens.push(token);
  };
  for (const lexeme of new Lexer().lex(text)) {
    for (const token of parser.next(lexeme)) add(token);
    if (parser.stack.length > MAX_DEPTH) throw new YamlProblem(TOO_DEEP, parser.offset);
  }
  for (const token of parser.end()) add(token);
  return tokens;
}

const TOO_DEEP = `it is nested deeper than ${MAX_DEPTH} levels, or holds itself`;

class Reader {
  /** What anchors name at this place of the document; of one that is not read whole, nothing. */
  readonly #anchors = new Map<string, { value?: unknown }>();

  constructor(private readonly text: string) {}

  read(node: Node | null): unknown {
    if (node === null) return null;
    if (isAlias(node)) return this.#aliased(node);
    const anchor: { value?: unknown } = {};
    if (node.anchor !== undefined) this.#anchors.set(node.anchor, anchor);
    anchor.value = this.#valueOf(node);
    return anchor.value;
  }

  #valueOf(node: Node): unknown {
    if (isScalar(node)) return this.#scalar(node);
    if (node.tag !== undefined) throw problem("an explicit tag", node);
    if (isMap(node)) return this.#map(node);
    if (isSeq(node)) return node.items.map((item) => this.read(item as Node | null));
    throw problem("an unknown node", node);
  }

  #scalar(node: Scalar): unknown {
    if (node.type?.startsWith("BLOCK") && hidesBlanks(this.#block(node))) {
      throw problem("a block with lines of blanks alone, which not every reader reads alike", node);
    }
    if (node.type === "QUOTE_DOUBLE" && /\\\n[ \t]*\n/.test(this.text.slice(...(node.range ?? [])))) {
      throw problem("an escaped line end before an empty line", node);
    }
    return scalarOf(node);
  }

  /** With the lines of blanks after it. */
  #block({ range }: Scalar): string {
    const [start = 0, end = 0] = range ?? [];
    const next = /[^ \t\n]/g;
    next.lastIndex = end;
    return this.text.slice(start, next.exec(this.text)?.index);
  }

  #aliased(alias: Alias): unknown {
    const anchor = this.#anchors.get(alias.source);
    if (anchor === undefined) throw problem("unidentified alias", alias);
    if (!("value" in anchor)) throw problem(TOO_DEEP, alias);
    return anchor.value;
  }

  /** go-yaml writes each key and each merge into the map in their order. */
  #map({ items, flow }: YAMLMap): Record<string, unknown> {
    const map: Record<string, unknown> = {};
    const own = new Set<string>();
    let isMerged = false;
    for (const { key, value } of items) {
      if (!isScalar(key)) throw problem("a key that is no text", (key ?? value) as Node);
      if (flow && this.#isJoined(value as Node | null)) throw problem("a colon without a blank after it", key);
      if (isMerge(key)) {
        if (isMerged) throw problem("duplicated merge key", key);
        isMerged = true;
        this.#merge(map, own, key, value as Node | null);
        continue;
      }
      if (key.anchor !== undefined) this.#anchors.set(key.anchor, { value: scalarOf(key) });
      const name = keyOf(key);
      if (own.has(name)) throw problem("duplicated mapping key", key);
      own.add(name);
      setOwn(map, name, this.read(value as Node | null));
    }
    return map;
  }

  /** Whether a colon belongs to the key before it, for some readers. */
  #isJoined(value: Node | null): boolean {
    const [start] = value?.range ?? [];
    return start !== undefined && /^:[^\s]/.test(this.text.slice(start - 1, start + 1));
  }

  #merge(map: Record<string, unknown>, own: ReadonlySet<string>, key: Scalar, node: Node | null): void {
    const merged = isSeq(node) ? node.items.map((item) => this.read(item as Node)).reverse() : [this.read(node)];
    for (const part of merged) {
      if (!isRecord(part)) throw problem("a merge of what is no map", key);
      for (const [name, value] of Object.entries(part)) {
        // YAML's rule is the opposite of what go-yaml does.
        if (own.has(name)) throw problem("a merge after a key that it sets: write << before the map's own keys", key);
        setOwn(map, name, value);
      }
    }
  }
}

function isMerge(key: Scalar): boolean {
  return key.value === "<<" && key.type === "PLAIN" && key.tag === undefined;
}

/** Whether the indentation of a block is not that of its first line, and lines of blanks are longer than that. */
function hidesBlanks(block: string): boolean {
  const [header = "", ...lines] = block.split("\n");
  const blanks = lines.some((line) => /^[ \t]+$/.test(line));
  return blanks && (/^[|>][-+]?\d/.test(header) || lines.every((line) => line.trim() === ""));
}

/** Also where it is `__proto__`. */
function setOwn(map: Record<string, unknown>, name: string, value: unknown): void {
  if (name !== "__proto__") map[name] = value;
  else Object.defineProperty(map, name, { value, enumerable: true, configurable: true, writable: true });
}

function scalarOf(node: Scalar): unknown {
  const text = textOf(node);
  const isText = node.type !== "PLAIN" || node.tag === "tag:yaml.org,2002:str";
  if (node.tag !== undefined && node.tag !== "tag:yaml.org,2002:str") throw problem("an explicit tag", node);
  if (isText) return text;
  if (text.startsWith("?")) throw problem("a word that begins with a question mark: quote it", node);
  const value = readPlain(text);
  if (typeof value !== "number") return value;
  const number = numberOf(value);
  if (number === undefined) throw problem("a number that not every reader reads exactly: quote it", node);
  return number;
}

function textOf({ value, source }: Scalar): string {
  return typeof value === "string" ? value : (source ?? "");
}

/** A key as JSON has it, which has texts alone. */
function keyOf(node: Scalar): string {
  const key = scalarOf(node);
  if (key === null) throw problem("null as a key: quote it", node);
  if (typeof key === "number" && String(key) !== textOf(node)) throw problem("a number as a key: quote it", node);
  return String(key);
}

function problem(message: string, { range }: Pick<Node, "range">): YamlProblem {
  return new YamlProblem(message, range?.[0] ?? 0);
}
