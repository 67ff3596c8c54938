import { createReadStream } from "node:fs";
import { readdir, realpath, stat } from "node:fs/promises";
import { isAbsolute, join, relative, sep } from "node:path";
import { buffer } from "node:stream/consumers";
import Type from "typebox";
import { Compile } from "typebox/compile";
import { parseAllDocuments, type Tags } from "yaml";
import { errorMessageOf, TerminalError } from "../../providers/errors";
import type { Manifest } from "../../providers/kubernetes/client";

/** An object as a file has it, and where. */
export interface SourcedManifest {
  manifest: Manifest & { metadata: { name: string } };
  /** The file as it was named; `-` for the standard input. */
  file: string;
}

/** A file, or a document in it, that could not be read. */
export interface ManifestProblem {
  file: string;
  message: string;
}

export interface Manifests {
  objects: SourcedManifest[];
  problems: ManifestProblem[];
}

const MANIFEST_FILE = /\.(ya?ml|json)$/i;
const MAX_BYTES = 5 * 1024 * 1024;
/** No Kubernetes object is nested as deep as this; a reader may recurse for each level. */
const MAX_DEPTH = 200;
/** More nodes than this behind the aliases of a document are an attack on the reader. */
const MAX_ALIASES = 100;

const texts = Type.Optional(Type.Record(Type.String(), Type.String()));
/** A manifest with a name, as far as it is read here. */
export const manifestSchema = Type.Object({
  apiVersion: Type.String({ minLength: 1 }),
  kind: Type.String({ minLength: 1 }),
  metadata: Type.Object({
    name: Type.String({ minLength: 1 }),
    namespace: Type.Optional(Type.String()),
    labels: texts,
    annotations: texts,
  }),
});
const manifestValidator = Compile(manifestSchema);
const listSchema = Compile(Type.Object({ kind: Type.Literal("List"), items: Type.Array(Type.Unknown()) }));

/**
 * Reads manifests from files and, recursively, directories; `-` is the standard input. In directories only YAML and JSON
 * files count, hidden folders and `node_modules` do not, and documents that are no Kubernetes objects are passed over.
 *
 * @param mayBeGone whether a path that does not exist is an empty one, not a problem
 */
export async function readManifests(paths: readonly string[], mayBeGone = false): Promise<Manifests> {
  const all: Manifests = { objects: [], problems: [] };
  const read = async (file: string, folder?: string) => {
    if (folder !== undefined) await refuseLinkOutOf(folder, file);
    const { objects, problems } = parseManifests(await readText(file), file, { strict: folder === undefined });
    all.objects.push(...objects);
    all.problems.push(...problems);
  };
  const report = (file: string, error: unknown) => all.problems.push({ file, message: errorMessageOf(error) });
  for (const path of paths) {
    try {
      if (path === "-" || !(await stat(path)).isDirectory()) await read(path);
      // One that cannot be read does not keep the others of the folder from being read.
      else for (const file of await manifestFiles(path)) await read(file, path).catch((error) => report(file, error));
    } catch (error) {
      if (!mayBeGone || (error as NodeJS.ErrnoException).code !== "ENOENT") report(path, error);
    }
  }
  return all;
}

/**
 * Reads manifests; none may be missing.
 *
 * @throws TerminalError naming each file and what is wrong in it, or the paths without a manifest
 */
export async function requireManifests(paths: readonly string[]): Promise<SourcedManifest[]> {
  const { objects, problems } = await readManifests(paths);
  if (problems.length > 0) {
    throw new TerminalError("NoManifest", problems.map(({ file, message }) => `${file}: ${message}`).join("\n"));
  }
  if (objects.length === 0 && paths.length > 0) {
    throw new TerminalError("NoManifest", `there is no Kubernetes object in ${paths.join(", ")}`);
  }
  return objects;
}

export function isManifestFile(file: string): boolean {
  return MANIFEST_FILE.test(file) && !file.split("/").some((part) => part === "node_modules" || /^\.[^./]/.test(part));
}

async function manifestFiles(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { recursive: true });
  const files = entries.filter(isManifestFile).map((entry) => join(directory, entry));
  const kept = await Promise.all(
    files.map(async (file) => (await stat(file).catch(() => undefined))?.isFile() ?? true),
  );
  return files.filter((_, index) => kept[index]).sort();
}

/** A folder from others may hold a link to a file of the machine that reads it. @throws Error when this is one */
async function refuseLinkOutOf(directory: string, file: string): Promise<void> {
  const inside = relative(await realpath(directory), await realpath(file));
  if (inside.split(sep)[0] === ".." || isAbsolute(inside))
    throw new Error("it is a link to a file outside of the folder");
}

async function readText(file: string): Promise<string> {
  // What is no plain file, such as a pipe, does not tell its size before its end.
  const content = await buffer(createReadStream(file === "-" ? "/dev/stdin" : file, { end: MAX_BYTES }));
  if (content.length > MAX_BYTES) throw new Error(`it has more than the ${MAX_BYTES} bytes that a manifest may have`);
  return content.toString("utf8");
}

/**
 * Parses one file's text.
 *
 * @param strict whether a document that is no Kubernetes object is a problem; otherwise it is passed over
 */
export function parseManifests(text: string, file: string, { strict }: { strict: boolean }): Manifests {
  const found: Manifests = { objects: [], problems: [] };
  const documents = parseAllDocuments(text, { version: "1.1", uniqueKeys: true, customTags: withoutExtras });
  for (const [index, document] of documents.entries()) {
    const where = documents.length > 1 ? `document ${index + 1}: ` : "";
    const report = (message: string) => found.problems.push({ file, message: where + message });
    // An unknown tag is only a warning to the parser, but its author means something else than its text.
    const [error = document.warnings.find(({ code }) => code === "TAG_RESOLVE_FAILED")] = document.errors;
    if (error !== undefined) {
      report(firstLine(error.message));
      continue;
    }
    try {
      const value: unknown = document.toJS({ maxAliasCount: MAX_ALIASES });
      if (isTooDeep(value)) throw new Error(`it is nested deeper than ${MAX_DEPTH} levels, or holds itself`);
      for (const item of listSchema.Check(value) ? value.items : [value]) {
        if (item === null || (!strict && !looksLikeObject(item))) continue;
        const problem = problemOf(item);
        if (problem === undefined) found.objects.push({ manifest: item as SourcedManifest["manifest"], file });
        else report(problem);
      }
    } catch (error) {
      report(firstLine(errorMessageOf(error)));
    }
  }
  return found;
}

/** Kubernetes' tools read YAML 1.1, where `no` is false, without its dates, sexagesimal numbers and types beyond JSON. */
function withoutExtras(tags: Tags): Tags {
  return tags.filter(
    (tag) =>
      typeof tag === "string" ||
      (!("format" in tag && tag.format === "TIME") && !/:(timestamp|binary|set|omap|pairs)$/.test(tag.tag)),
  );
}

/**
 * Also true for a value that contains itself, by an anchor within it.
 *
 * @param passed the greatest depth at which each part was found to be in order: aliases lead to the same part many
 *   times
 */
function isTooDeep(value: unknown, depth = 0, passed = new Map<object, number>()): boolean {
  if (typeof value !== "object" || value === null || (passed.get(value) ?? -1) >= depth) return false;
  if (depth > MAX_DEPTH || Object.values(value).some((part) => isTooDeep(part, depth + 1, passed))) return true;
  passed.set(value, depth);
  return false;
}

function looksLikeObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && "apiVersion" in value && "kind" in value;
}

/** What is wrong with something that should be an object's manifest. */
function problemOf(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return "is not a Kubernetes object";
  const [error] = manifestValidator.Errors(value);
  if (error === undefined) return undefined;
  const path = error.instancePath.split("/").slice(1);
  if (error.keyword === "required") return `${[...path, error.params.requiredProperties[0]].join(".")}: must be given`;
  return `${path.join(".")}: ${error.message}`;
}

function firstLine(message: string): string {
  return message.split("\n", 1)[0]?.replace(/:$/, "") ?? "";
}
