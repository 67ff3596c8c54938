import { errorMessageOf } from "../../providers/errors";
import { isRecord } from "../../providers/kubernetes/field-path";
import { readJsonStream } from "./json-stream";
import { MAX_DEPTH, readYamlDocument, YamlProblem } from "./yaml-document";

/** A document of a file that names a type of objects; everything else in it is as it was written. */
export interface ManifestDocument {
  apiVersion: string;
  kind: string;
  [field: string]: unknown;
}

export interface SourcedDocument {
  manifest: ManifestDocument;
  /** The file as it was named; `-` for the standard input. */
  file: string;
}

/** A file, or a document in it, that could not be read. */
export interface ManifestProblem {
  file: string;
  message: string;
}

export interface ParsedFile {
  objects: SourcedDocument[];
  problems: ManifestProblem[];
}

/** The values of a document, those behind its aliases included. More are an attack on the reader. */
const MAX_VALUES = 2_000_000;

/** After so many, the rest of a file is not read. */
const MAX_PROBLEMS = 20;

/** kubectl splits a file at lines that begin so before it parses it: an error in one document is none in the next. */
export const SEPARATOR = /^---.*\n/m;
const IS_SEPARATOR = /^---[ \t]*(?:#.*)?\n$/;

/**
 * Parses one file's text: YAML documents, JSON, and lists of objects (`List`, `TenantList`) in either.
 *
 * @param strict whether a document that is no Kubernetes object is a problem; otherwise it is passed over
 */
export function parseManifests(text: string, file: string, { strict }: { strict: boolean }): ParsedFile {
  const found: ParsedFile = { objects: [], problems: [] };
  const documents = documentsOf(text.replace(/^\uFEFF/, ""));
  for (const [index, { values, error }] of documents.entries()) {
    if (found.problems.length >= MAX_PROBLEMS) break;
    const report = (message: string) =>
      found.problems.push({ file, message: documents.length === 1 ? message : `document ${index + 1}: ${message}` });
    if (error !== undefined) report(error);
    for (const value of values) {
      if (value === null || value === undefined) continue;
      const problem = sizeProblem(value);
      if (problem !== undefined) {
        report(problem);
        continue;
      }
      for (const item of itemsOf(value)) {
        if (isDocument(item)) found.objects.push({ manifest: item, file });
        else if (strict || isNamed(item)) report("is not a Kubernetes object");
      }
    }
  }
  return found;
}

interface Part {
  values: unknown[];
  error?: string;
}

/** What kubectl reads as JSON of no object, and then whatever follows. */
const JSON_VALUE = /^\s*(?:["[\d]|-\d|true|false|null)/;

/** The documents that are not empty, as kubectl finds them: JSON first, and YAML from where there is no JSON. */
function documentsOf(text: string): Part[] {
  try {
    const { values, end } = readJsonStream(text);
    const documents = values.map((value): Part => ({ values: [value] }));
    const rest = text.slice(end);
    if (rest.trim() === "") return documents;
    if (values.length > 1 || (values.length === 1 && JSON_VALUE.test(rest)))
      return [...documents, { values: [], error: "JSON is followed by what is no JSON object" }];
    return [...documents, ...yamlDocuments(rest, linesIn(text.slice(0, end)))];
  } catch (error) {
    return [{ values: [], error: errorMessageOf(error) }];
  }
}

function yamlDocuments(text: string, linesBefore: number): Part[] {
  // kubectl passes over some of these, and not over others.
  if (/[^ \t\r\n]/.test(/^[\s\u0085]*/.exec(text)?.[0] ?? "")) {
    return [{ values: [], error: `line ${linesBefore + 1}: a blank that is no space` }];
  }
  const documents: Part[] = [];
  let line = linesBefore;
  let errors = 0;
  // Each line ends, as kubectl reads it.
  for (let rest = text.replaceAll("\r\n", "\n").replace(/(?<!\n)$/, "\n"); rest !== ""; ) {
    const separator = SEPARATOR.exec(rest);
    const [marker, at] = separator === null ? ["", rest.length] : [separator[0], separator.index];
    const part = rest.slice(0, at);
    rest = rest.slice(at + marker.length);
    const isEmpty = part.length <= 4096 && /^(?:[ \t\n]|#[^\n\r]*\n)*$/.test(part);
    if (!isEmpty) documents.push(parseYaml(part, line));
    line += linesIn(part);
    if (marker !== "" && !IS_SEPARATOR.test(marker)) {
      documents.push({
        values: [],
        error: `line ${line + 1}: --- is followed by something: write it on a line of its own`,
      });
    }
    line += linesIn(marker);
    errors += documents.slice(-2).filter(({ error }) => error !== undefined).length;
    if (errors >= 2 * MAX_PROBLEMS) break;
  }
  return documents;
}

function linesIn(text: string): number {
  let lines = 0;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) lines++;
  return lines;
}

function parseYaml(text: string, linesBefore: number): Part {
  try {
    return { values: [readYamlDocument(text)] };
  } catch (error) {
    if (!(error instanceof YamlProblem)) return { values: [], error: errorMessageOf(error) };
    return { values: [], error: `line ${linesBefore + linesIn(text.slice(0, error.offset)) + 1}: ${error.message}` };
  }
}

function sizeProblem(value: unknown): string | undefined {
  const { depth, values } = measure(value, new Map());
  if (depth > MAX_DEPTH) return `it is nested deeper than ${MAX_DEPTH} levels, or holds itself`;
  return values > MAX_VALUES ? `it has more than ${MAX_VALUES} values behind its aliases` : undefined;
}

interface Size {
  depth: number;
  values: number;
}

/** Each part is measured once, however many aliases lead to it; of one that holds itself, the depth is infinite. */
function measure(value: unknown, known: Map<object, Size>, level = 0): Size {
  if (typeof value !== "object" || value === null) return { depth: 0, values: 1 };
  const before = known.get(value);
  if (before !== undefined) return before;
  const size: Size = { depth: Number.POSITIVE_INFINITY, values: 1 };
  known.set(value, size);
  if (level > MAX_DEPTH) return size;
  let depth = 0;
  for (const part of Object.values(value)) {
    const inner = measure(part, known, level + 1);
    depth = Math.max(depth, inner.depth);
    size.values += inner.values;
  }
  size.depth = depth + 1;
  return size;
}

/**
 * The objects of a list of objects; anything else is one item. To kubectl, a list is what has items, of any kind, and those of a typed
 * list need not repeat its type.
 */
function* itemsOf(value: unknown, isOutermost = true): Generator<unknown> {
  const { apiVersion, kind, items } = (value ?? {}) as Partial<ManifestDocument>;
  if (items === null && isOutermost) return;
  if (!Array.isArray(items)) {
    yield value;
    return;
  }
  const type = { apiVersion, kind: typeof kind === "string" ? kind.replace(/List$/, "") : "" };
  for (const item of items as unknown[]) {
    const fields = item === null ? {} : item;
    const isUntyped = isOutermost && isRecord(fields) && !fields.apiVersion && !fields.kind;
    yield* itemsOf(isUntyped ? { ...fields, ...type } : item, false);
  }
}

/** Whether a value that is no object was meant to be one: half of its type is there, and a name. */
function isNamed(value: unknown): boolean {
  if (!isRecord(value) || !isRecord(value.metadata)) return false;
  return typeof value.metadata.name === "string" && (value.kind ?? value.apiVersion) !== undefined;
}

function isDocument(value: unknown): value is ManifestDocument {
  if (!isRecord(value)) return false;
  const { apiVersion, kind } = value;
  return typeof apiVersion === "string" && apiVersion !== "" && typeof kind === "string" && kind !== "";
}
