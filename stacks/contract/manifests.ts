import { createReadStream, existsSync, lstatSync } from "node:fs";
import { readdir, realpath, stat } from "node:fs/promises";
import { dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { buffer } from "node:stream/consumers";
import { errorMessageOf, TerminalError } from "../../providers/errors";
import { type ManifestProblem, type ParsedFile, parseManifests, type SourcedDocument } from "./parse-manifests";

/** What files hold: documents of all types, Kindstack's or not. */
export interface Manifests {
  objects: readonly SourcedDocument[];
  problems: readonly ManifestProblem[];
  /** What is not read as its author may expect. */
  notes?: readonly string[];
}

/** Its byte-order marks. */
const UTF_16 = ["fffe", "feff"];
/** As kubectl, Flux and Argo CD have it. */
const MANIFEST_FILE = /\.(ya?ml|json)$/;
const IN_GIT = /(^|\/)\.git\//;
/** A longer file is no manifest. */
export const MAX_BYTES = 5 * 1024 * 1024;

/**
 * Reads manifests from files and, recursively, directories; `-` is the standard input. In directories, all YAML and JSON files
 * count that `kubectl apply -R` reads, hidden ones too. Documents that are no Kubernetes objects are passed over.
 *
 * @param mayBeGone whether a path that does not exist is an empty one, not a problem
 */
export async function readManifests(paths: readonly string[], mayBeGone = false): Promise<Manifests> {
  const found: ParsedFile = { objects: [], problems: [] };
  const notes: string[] = [];
  const known = new Set<string>();
  const read = async (file: string, folder?: string, isTemplate = false) => {
    if (known.has(resolve(file))) return; // it is in a folder that was read, or named twice
    known.add(resolve(file));
    if (folder !== undefined) await refuseLinkOutOf(await realpath(folder), file);
    const { objects, problems } = parseManifests(await readText(file), file, { strict: folder === undefined });
    found.objects.push(...objects);
    if (!isTemplate) found.problems.push(...problems);
  };
  const report = (file: string, error: unknown) => found.problems.push({ file, message: errorMessageOf(error) });
  for (const path of paths) {
    try {
      const status = path === "-" ? undefined : await stat(path);
      // A pipe is no file of anyone's, and has no place.
      if (status?.isDirectory() || status?.isFile()) await refuseLinkOutOf(await realpath(rootOf(path)), path);
      if (!status?.isDirectory()) {
        await read(path);
        continue;
      }
      const listed = await manifestFiles(path);
      notes.push(...listed.notes);
      // One that cannot be read does not keep the others of the folder from being read.
      for (const file of listed.files) {
        await read(file, path, listed.templates.has(file)).catch((error) => report(file, error));
      }
    } catch (error) {
      if (!mayBeGone || (error as NodeJS.ErrnoException).code !== "ENOENT") report(path, error);
    }
  }
  return { ...found, notes };
}

/**
 * Reads manifests; none may be missing.
 *
 * @throws TerminalError naming each file and what is wrong in it, or the paths without a manifest
 */
export async function requireManifests(paths: readonly string[]): Promise<readonly SourcedDocument[]> {
  const { objects, problems } = await readManifests(paths);
  if (problems.length > 0) {
    throw new TerminalError("NoManifest", problems.map(({ file, message }) => `${file}: ${message}`).join("\n"));
  }
  if (objects.length === 0 && paths.length > 0) {
    throw new TerminalError("NoManifest", `there is no Kubernetes object in ${paths.join(", ")}`);
  }
  return objects;
}

/** Which files of a folder are manifests, by their paths within it. */
interface SelectedFiles {
  files: string[];
  /** Those of them that are templates of a chart: manifests as far as they are YAML. */
  templates: ReadonlySet<string>;
  /** What to say of the folder. */
  notes: string[];
}

/** @param name the folder's name, for the notes */
export function selectFiles(all: readonly string[], name: string): SelectedFiles {
  const charts = all.filter((file) => /(^|\/)Chart\.ya?ml$/i.test(file)).map((file) => file.replace(/[^/]*$/, ""));
  const isTemplate = (file: string) => charts.some((chart) => file.startsWith(`${chart}templates/`));
  const files = all.filter((file) => MANIFEST_FILE.test(file) && !IN_GIT.test(file));
  const templates = new Set(files.filter(isTemplate));
  const notes: string[] = [];
  if (all.some(isTemplate)) {
    notes.push(`${name} has a Helm chart, whose templates are not rendered: preview what \`helm template\` prints`);
  }
  const overlay = files.find((file) => /(^|\/)kustomization\.ya?ml$/.test(file));
  if (overlay !== undefined) {
    notes.push(
      `${name} has a ${overlay.split("/").at(-1)}, which is not run: files are read as they are. ` +
        "Preview what it makes with --render 'kubectl kustomize …'",
    );
  }
  const [unread] = all.filter((file) => !MANIFEST_FILE.test(file) && MANIFEST_FILE.test(file.toLowerCase()));
  if (unread !== undefined) notes.push(`${join(name, unread)} is not read: kubectl reads .yaml, .yml and .json`);
  return { files, templates, notes };
}

async function manifestFiles(directory: string): Promise<SelectedFiles> {
  const { files, templates, notes } = selectFiles(await readdir(directory, { recursive: true }), directory);
  const paths = files.map((entry) => join(directory, entry));
  const kept = await Promise.all(
    paths.map(async (file) => (await stat(file).catch(() => undefined))?.isFile() ?? true),
  );
  return {
    files: paths.filter((_, index) => kept[index]).sort(),
    templates: new Set([...templates].map((entry) => join(directory, entry))),
    notes,
  };
}

async function readText(file: string): Promise<string> {
  // What is no plain file, such as a pipe, does not tell its size before its end.
  const content = await buffer(createReadStream(file === "-" ? "/dev/stdin" : file, { end: MAX_BYTES }));
  if (content.length > MAX_BYTES) throw new Error(`it has more than the ${MAX_BYTES} bytes that a manifest may have`);
  if (UTF_16.includes(content.subarray(0, 2).toString("hex"))) {
    throw new Error("it is UTF-16, as Windows PowerShell writes it: save it as UTF-8");
  }
  return textOf(content);
}

/** @throws Error for what readers would make other characters of */
function textOf(content: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(content);
  } catch {
    throw new Error("it is not UTF-8");
  }
}

/* Manifests may be from others: a link among them could lead to a file of the machine that reads them. */

/** Refuses a file that is elsewhere, by a link. @throws Error when the file is not below it, or among what git keeps */
async function refuseLinkOutOf(root: string, file: string): Promise<void> {
  const target = await realpath(file);
  if (!isWithin(root, target)) throw new Error("it is a link to a file outside of the folder");
  // A checkout may keep its token there.
  if (relative(root, target).split(sep).includes(".git")) throw new Error("it is a link into .git");
}

/**
 * The folder that a path named by a user may not lead out of: the repository, or else the working directory if the path is
 * below it, or else the folder that the path is in.
 */
function rootOf(path: string): string {
  const named = resolve(path);
  const isBelow = isWithin(process.cwd(), named);
  const folder = isBelow ? process.cwd() : realFolder(dirname(named));
  for (let above = folder; ; above = dirname(above)) {
    if (existsSync(join(above, ".git"))) return above;
    if (dirname(above) === above) return folder;
  }
}

/** The folder, or if it is a link the first one above it that is none. */
function realFolder(folder: string): string {
  return lstatSync(folder, { throwIfNoEntry: false })?.isSymbolicLink() ? realFolder(dirname(folder)) : folder;
}

function isWithin(root: string, path: string): boolean {
  const inside = relative(root, path);
  return inside.split(sep)[0] !== ".." && !isAbsolute(inside);
}
