import fs from "node:fs";
import path from "node:path";
import { parseAllDocuments } from "yaml";
import { errorMessageOf, TerminalError } from "../../providers/errors";
import type { Manifest } from "../../providers/kubernetes/client";

/** A manifest and the file that it was read from. */
export interface ManifestFile {
  manifest: Manifest;
  file: string;
}

const EXTENSIONS = [".yaml", ".yml", ".json"];

/**
 * Reads manifests from files and, recursively and in the order of their names, from the YAML and JSON files of folders.
 * A file may hold several documents and Lists.
 *
 * @throws TerminalError naming the file, for what cannot be read or is no manifest
 */
export function readManifests(paths: readonly string[]): ManifestFile[] {
  return paths.flatMap(filesAt).flatMap(readFile);
}

function filesAt(location: string): string[] {
  const stats = fs.statSync(location, { throwIfNoEntry: false });
  if (stats === undefined) throw new TerminalError("NoManifest", `${location}: there is no such file or folder`);
  if (!stats.isDirectory()) return [location];
  const files = fs
    .readdirSync(location, { recursive: true, encoding: "utf8" })
    .filter((name) => EXTENSIONS.includes(path.extname(name)))
    .map((name) => path.join(location, name))
    .sort();
  if (files.length === 0) throw new TerminalError("NoManifest", `${location}: no file in it ends with ${EXTENSIONS}`);
  return files;
}

function readFile(file: string): ManifestFile[] {
  const documents = parseAllDocuments(fs.readFileSync(file, "utf8"));
  return [...documents].flatMap((document, index) => {
    const place = `${file}, document ${index + 1}`;
    if (document.errors[0] !== undefined) {
      throw new TerminalError("NoManifest", `${place}: ${errorMessageOf(document.errors[0])}`);
    }
    return manifestsIn(document.toJS(), place).map((manifest) => ({ manifest, file }));
  });
}

function manifestsIn(value: unknown, place: string): Manifest[] {
  if (value === null || value === undefined) return []; // comments only
  const { apiVersion, kind, metadata, items } = value as Partial<Manifest> & { items?: unknown };
  if (kind === "List" && Array.isArray(items)) return items.flatMap((item) => manifestsIn(item, place));
  if (typeof apiVersion !== "string" || typeof kind !== "string" || typeof metadata?.name !== "string") {
    throw new TerminalError("NoManifest", `${place}: apiVersion, kind and metadata.name must be given`);
  }
  return [value as Manifest];
}
