import { numberOf } from "./yaml-scalar";

/** What a stream of JSON values begins with, and where it is something else. */
interface JsonStream {
  values: unknown[];
  /** The place after the last value. */
  end: number;
}

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\]:,]|[^\s{}[\]:,"]+/g;
const BLANKS = /[ \t\r\n]*/y;

/** Objects of JSON that follow each other, as `jq` prints them. @throws Error for what readers disagree about */
export function readJsonStream(text: string): JsonStream {
  const values: unknown[] = [];
  let end = 0;
  for (let start = afterBlanks(text, end); text[start] === "{"; start = afterBlanks(text, end)) {
    const next = endOfValue(text, start) ?? start;
    const value = parsed(text.slice(start, next));
    if (value === undefined) break;
    refuseAmbiguous(text.slice(start, next));
    values.push(value);
    end = next;
  }
  return { values, end };
}

function afterBlanks(text: string, from: number): number {
  BLANKS.lastIndex = from;
  return from + (BLANKS.exec(text)?.[0].length ?? 0);
}

/** Where a value ends whose brackets are closed; strings may hold brackets. */
function endOfValue(text: string, from: number): number | undefined {
  const pattern = /"(?:[^"\\]|\\.)*"|[{}[\]"]/gs;
  pattern.lastIndex = from;
  let depth = 0;
  for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
    const [token] = match;
    if (token === '"') return undefined;
    if (token === "{" || token === "[") depth++;
    if ((token === "}" || token === "]") && --depth === 0) return pattern.lastIndex;
  }
  return undefined;
}

function parsed(text: string): object | undefined {
  try {
    return JSON.parse(text) as object;
  } catch {
    return undefined;
  }
}

/** The text is JSON. */
function refuseAmbiguous(text: string): void {
  const maps: (Set<string> | undefined)[] = [];
  let isKey = false;
  for (const [token] of text.matchAll(TOKEN)) {
    if (token === "{" || token === "[") {
      maps.push(token === "{" ? new Set() : undefined);
      isKey = token === "{";
    } else if (token === "}" || token === "]") {
      maps.pop();
    } else if (token === ",") {
      isKey = maps.at(-1) !== undefined;
    } else if (token.startsWith('"')) {
      const string = JSON.parse(token) as string;
      if (!string.isWellFormed()) throw new Error("half of a surrogate pair");
      if (isKey && maps.at(-1)?.has(string)) throw new Error("duplicated mapping key");
      if (isKey) maps.at(-1)?.add(string);
      isKey = false;
    } else if (/^[-\d]/.test(token) && numberOf(Number(token)) === undefined) {
      throw new Error("a number that not every reader reads exactly: quote it");
    }
  }
}
