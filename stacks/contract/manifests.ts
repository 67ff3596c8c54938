import { createReadStream } from "node:fs";
import { readdir, realpath, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { buffer } from "node:stream/consumers";
import { errorMessageOf, TerminalError } from "../../providers/errors";
import { refuseLinkOutOf, rootOf } from "./manifest-links";
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
const MANIFEST_FILE = /\.(ya?ml|json)$/i;
/** A longer file is no manifest. */
export const MAX_BYTES = 5 * 1024 * 1024;

/**
 * Reads manifests from files and, recursively, directories; `-` is the standard input. In directories only YAML and JSON
 * files count, hidden folders, `node_modules` and templates of charts do not, and documents that are no Kubernetes objects
 * are passed over.
 *
 * @param mayBeGone whether a path that does not exist is an empty one, not a problem
 */
export async function readManifests(paths: readonly string[], mayBeGone = false): Promise<Manifests> {
  const found: ParsedFile = { objects: [], problems: [] };
  const notes: string[] = [];
  const known = new Set<string>();
  const read = async (file: string, folder?: string) => {
    if (known.has(resolve(file))) return; // it is in a folder that was read, or named twice
    known.add(resolve(file));
    if (folder !== undefined) await refuseLinkOutOf(await realpath(folder), file);
    const { objects, problems } = parseManifests(await readText(file), file, { strict: folder === undefined });
    found.objects.push(...objects);
    found.problems.push(...problems);
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
      for (const file of listed.files) await read(file, path).catch((error) => report(file, error));
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

/**
 * Which files of a folder are manifests, by their paths within it, and what to say of the others.
 *
 * @param name the folder's name, for the notes
 */
export function selectFiles(files: readonly string[], name: string): { files: string[]; notes: string[] } {
  const charts = files.filter((file) => /(^|\/)Chart\.ya?ml$/i.test(file)).map((file) => file.replace(/[^/]*$/, ""));
  const isTemplate = (file: string) => charts.some((chart) => file.startsWith(`${chart}templates/`));
  const manifests = files.filter((file) => isManifestFile(file) && !isTemplate(file));
  const overlays = manifests.filter((file) => /(^|\/)kustomization\.ya?ml$/i.test(file));
  const notes: string[] = [];
  if (files.some(isTemplate)) {
    notes.push(`${name} has a Helm chart, whose templates are not read: preview what \`helm template\` prints`);
  }
  if (overlays.length > 0) {
    notes.push(
      `${name} has a ${overlays[0]?.split("/").at(-1)}, which is not run: files are read as they are. ` +
        "Preview what it makes with --render 'kubectl kustomize …'",
    );
  }
  return { files: manifests, notes };
}

function isManifestFile(file: string): boolean {
  return MANIFEST_FILE.test(file) && !file.split("/").some((part) => part === "node_modules" || /^\.[^./]/.test(part));
}

async function manifestFiles(directory: string): Promise<{ files: string[]; notes: string[] }> {
  const { files: selected, notes } = selectFiles(await readdir(directory, { recursive: true }), directory);
  const files = selected.map((entry) => join(directory, entry));
  const kept = await Promise.all(
    files.map(async (file) => (await stat(file).catch(() => undefined))?.isFile() ?? true),
  );
  return { files: files.filter((_, index) => kept[index]).sort(), notes };
}

async function readText(file: string): Promise<string> {
  // What is no plain file, such as a pipe, does not tell its size before its end.
  const content = await buffer(createReadStream(file === "-" ? "/dev/stdin" : file, { end: MAX_BYTES }));
  if (content.length > MAX_BYTES) throw new Error(`it has more than the ${MAX_BYTES} bytes that a manifest may have`);
  if (UTF_16.includes(content.subarray(0, 2).toString("hex"))) {
    throw new Error("it is UTF-16, as Windows PowerShell writes it: save it as UTF-8");
  }
  return content.toString("utf8");
}
