import yaml from "js-yaml";
import { errorMessageOf } from "../../providers/errors";
import { isRecord } from "../../providers/kubernetes/field-path";

/** A document of a file that names a type of objects; everything else in it is as it was written. */
export interface ManifestDocument {
  apiVersion: string;
  kind: string;
  [field: string]: unknown;
}

/** A document as a file has it, and where. */
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

/** No Kubernetes object is nested as deep as this; a reader may recurse for each level. */
const MAX_DEPTH = 200;
/** The values of a document, those behind its aliases included. More are an attack on the reader. */
const MAX_VALUES = 2_000_000;

/** After so many, the rest of a file is not read. */
const MAX_PROBLEMS = 20;

/** Kubernetes' tools split a file at these lines before they parse it: an error in one document is none in the next. */
const SEPARATOR = /^---[ \t]*(?:#.*)?\r?$/m;

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
        else if (strict) report("is not a Kubernetes object");
      }
    }
  }
  return found;
}

interface Part {
  values: unknown[];
  error?: string;
}

/** The documents that are not empty. */
function documentsOf(text: string): Part[] {
  const json = parseJson(text);
  if (json !== undefined) return json.map((value) => ({ values: [value] }));
  const documents: Part[] = [];
  let line = 0;
  let errors = 0;
  for (const part of text.split(SEPARATOR)) {
    const isEmpty = /^(?:\s|#[^\n]*(?:\n|$))*$/.test(part.slice(0, 4096)) && part.length <= 4096;
    if (!isEmpty) {
      const parsed = parseYaml(part, line);
      documents.push(parsed);
      if (parsed.error !== undefined && ++errors === MAX_PROBLEMS) break;
    }
    for (let at = part.indexOf("\n"); at >= 0; at = part.indexOf("\n", at + 1)) line++;
  }
  return documents;
}

/** Between values of JSON that follow each other, as `jq` prints them. */
const NEXT_VALUE = /(?=\{)(?<=\}[ \t]*\r?\n)/;

/** The values of JSON, which may be indented by tabs, as YAML may not. */
function parseJson(text: string): unknown[] | undefined {
  if (!/^\s*[[{]/.test(text.slice(0, 1000))) return undefined;
  try {
    return text.split(NEXT_VALUE).map((value) => JSON.parse(value) as unknown);
  } catch {
    return undefined; // a flow collection of YAML, or nothing
  }
}

function parseYaml(text: string, linesBefore: number): Part {
  try {
    return { values: yaml.loadAll(text, null, READER as yaml.LoadOptions) };
  } catch (error) {
    const { reason, mark } = error as yaml.YAMLException;
    if (reason === undefined) return { values: [], error: errorMessageOf(error) };
    // Of what the file holds nothing is quoted: it may be no manifest at all.
    const words = reason.replace(/ ?("[\s\S]*"|!?<[\s\S]*>|'[\s\S]*')/g, "");
    return { values: [], error: `line ${linesBefore + mark.line + 1}: ${words}` };
  }
}

/** Kubernetes' tools read YAML 1.1 as go-yaml does: `no` is false, `0644` is octal; dates and 1:30 are texts. */
const BOOLEAN = /^(?:y|yes|true|on|n|no|false|off)$/i;
const ONE_CASE = /^(?:[a-z]+|[A-Z][a-z]*|[A-Z]+)$/;
const INTEGER = /^[-+]?(?:0[bB][01_]+|0[xX][\da-fA-F_]+|0[oO]?[0-7_]*|[1-9][\d_]*)$/;
const NUMBER = /^[-+]?(?:\.\d[\d_]*|\d[\d_]*(?:\.[\d_]*)?)(?:[eE][-+]?\d+)?$/;

const scalar = (tag: string, patterns: readonly RegExp[], construct: (text: string) => unknown) =>
  new yaml.Type(`tag:yaml.org,2002:${tag}`, {
    kind: "scalar",
    resolve: (text: string | null) => text !== null && patterns.every((pattern) => pattern.test(text)),
    construct,
  });

const READER = {
  schema: yaml.FAILSAFE_SCHEMA.extend({
    implicit: [
      new yaml.Type("tag:yaml.org,2002:null", {
        kind: "scalar",
        resolve: (text: string | null) => text === null || /^(?:~|null|Null|NULL|)$/.test(text),
        construct: () => null,
      }),
      scalar("bool", [BOOLEAN, ONE_CASE], (text) => /^(?:y|t|on)/i.test(text)),
      scalar("int", [INTEGER], integerOf),
      scalar("float", [NUMBER], (text) => Number(text.replaceAll("_", ""))),
      new yaml.Type("tag:yaml.org,2002:merge", { kind: "scalar", resolve: (text) => text === "<<" || text === null }),
    ],
  }),
  maxDepth: MAX_DEPTH,
};

function integerOf(text: string): number {
  const digits = text.replaceAll("_", "").replace(/^[-+]/, "");
  const isOctal = /^0[oO]?[0-7]+$/.test(digits);
  const value = isOctal ? Number.parseInt(digits.replace(/^0[oO]?/, ""), 8) : Number(digits);
  return text.startsWith("-") ? -value : value;
}

/** What is wrong with the size of a value, aliases included. */
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

/** The objects of a list of objects; anything else is one item. The items of a typed list need not repeat its type. */
function* itemsOf(value: unknown): Generator<unknown> {
  const { apiVersion, kind, items } = (value ?? {}) as Partial<ManifestDocument>;
  if (typeof kind !== "string" || !kind.endsWith("List") || !Array.isArray(items)) {
    yield value;
    return;
  }
  const type = kind === "List" ? {} : { apiVersion, kind: kind.slice(0, -"List".length) };
  for (const item of items as unknown[]) yield* itemsOf(isRecord(item) ? { ...type, ...item } : item);
}

function isDocument(value: unknown): value is ManifestDocument {
  if (!isRecord(value)) return false;
  const { apiVersion, kind } = value;
  return typeof apiVersion === "string" && apiVersion !== "" && typeof kind === "string" && kind !== "";
}
