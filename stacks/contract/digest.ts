import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, realpathSync, statSync } from "node:fs";
import { dirname, join, resolve, sep } from "node:path";
import Type from "typebox";
import { Parse } from "typebox/value";
import type { AnyKind } from "./kind";

/** The folder of Kindstack's code, compiled or not. */
const KINDSTACK = resolve(__dirname, "../..");
/** What each program has in its hands besides the code of its kind. */
const INTERFACE = ["stacks/contract", "providers"].map((folder) => join(KINDSTACK, folder));
/** Dependencies, tests, hidden files, and what a compiler writes beside its code. */
const UNREAD = /^(node_modules|coverage|tests?|__tests__|\..*|.*\.(test|spec)\.\w+|.*\.d\.\w+|.*\.map)$/;
/** What a module names in `import … from "…"`, `import("…")` or `require("…")`. */
const IMPORTED = /\b(?:from|import|require)\s*\(?\s*["']([^"'\n]+)["']/g;
const CODE = /\.[cm]?[jt]sx?$/;

const names = Type.Optional(Type.Record(Type.String(), Type.Unknown()));
const packageSchema = Type.Object({
  version: Type.Optional(Type.String()),
  ...{ dependencies: names, optionalDependencies: names, peerDependencies: names },
});

/**
 * A digest of all that a kind's program depends on: the files in the kind's folder; the modules that these import, with the data
 * files beside them; the packages that these import, with those on which the packages depend; Kindstack's contract and providers;
 * and the settings that the kind reads.
 *
 * Programs of the same digest declare the same. Programs of two digests may declare the same as well.
 */
export function programDigest({ directory, capabilities }: Pick<AnyKind, "directory" | "capabilities">): string {
  const contents = [
    contentsOf(directory),
    importedDigests(directory, { deep: true }),
    interfaceDigest(),
    capabilities.settings?.() ?? null,
  ];
  return createHash("sha256").update(JSON.stringify(contents)).digest("hex").slice(0, 16);
}

/** The files of a folder by their paths in it, each with the digest of its contents. */
function contentsOf(directory: string): [path: string, digest: string][] {
  return filesBelow(directory).map((file) => [file.slice(directory.length), digestOf(file)]);
}

function digestOf(file: string): string {
  return createHash("sha256").update(readFileSync(file)).digest("hex");
}

/** The files of a folder, in a fixed order. */
function filesBelow(directory: string): string[] {
  const entries = readdirSync(directory, { withFileTypes: true }).filter(({ name }) => !UNREAD.test(name));
  return entries
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = join(directory, entry.name);
      return entry.isDirectory() ? filesBelow(path) : entry.isFile() ? [path] : [];
    });
}

/**
 * Digests of what the modules of a folder import from elsewhere, directly or not, in a fixed order.
 *
 * @param deep whether also of the packages on which imported packages depend
 */
function importedDigests(directory: string, { deep }: { deep: boolean }): string[] {
  const modules = new Set<string>();
  const packages = new Map<string, string>();
  const left = filesBelow(directory).filter((file) => CODE.test(file));
  for (let file = left.pop(); file !== undefined; file = left.pop()) {
    for (const [, specifier = ""] of readFileSync(file, "utf8").matchAll(IMPORTED)) {
      if (!specifier.startsWith(".")) {
        addPackage(packages, packageName(specifier), dirname(file), { deep });
        continue;
      }
      const imported = moduleFile(resolve(dirname(file), specifier));
      const isKnown = [directory, ...INTERFACE].some((folder) => imported?.startsWith(folder + sep));
      if (imported === undefined || isKnown || modules.has(imported)) continue;
      modules.add(imported);
      left.push(imported);
    }
  }
  const data = new Set([...modules].map(dirname).flatMap(dataFiles));
  return [...[...modules, ...data].map(digestOf), ...packages.values()].sort();
}

/** Compiled or not. */
function moduleFile(path: string): string | undefined {
  const source = path.replace(/js(x?)$/, "ts$1"); // TypeScript's own imports may name what it compiles to
  const indexes = [".js", ".ts", ".mjs", ".mts", ".cjs", ".cts"].flatMap((end) => [
    path + end,
    join(path, `index${end}`),
  ]);
  return [path, source, ...indexes].find((file) => statSync(file, { throwIfNoEntry: false })?.isFile());
}

function dataFiles(directory: string): string[] {
  const entries = readdirSync(directory, { withFileTypes: true });
  const data = entries.filter((entry) => entry.isFile() && !UNREAD.test(entry.name) && !CODE.test(entry.name));
  return data.map(({ name }) => join(directory, name));
}

/** `@acme/shared` of `@acme/shared/labels`. */
function packageName(specifier: string): string {
  return specifier
    .split("/")
    .slice(0, specifier.startsWith("@") ? 2 : 1)
    .join("/");
}

/**
 * Adds a package, and those on which it depends: their versions, and the files of those that are linked, such as those of a
 * workspace.
 */
function addPackage(found: Map<string, string>, name: string, from: string, { deep }: { deep: boolean }): void {
  if (name === "kindstack") return; // the interface
  const directory = installed(name, from);
  if (directory === undefined || found.has(directory)) return;
  const { version, dependencies, optionalDependencies, peerDependencies } = packageOf(directory);
  const isLinked = !directory.includes(`${sep}node_modules${sep}`);
  found.set(directory, JSON.stringify([name, version, isLinked ? contentsOf(directory) : []]));
  if (!deep) return;
  const others = Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies });
  for (const other of others) addPackage(found, other, directory, { deep });
}

/** The folder of a package, as Node.js finds it; modules of Node.js have none. */
function installed(name: string, from: string): string | undefined {
  const directory = join(from, "node_modules", name);
  if (existsSync(join(directory, "package.json"))) return realpathSync(directory);
  return dirname(from) === from ? undefined : installed(name, dirname(from));
}

const packages = new Map<string, Type.Static<typeof packageSchema>>();

/** What a package.json says. One of an installed package does not change while this process runs. */
function packageOf(directory: string): Type.Static<typeof packageSchema> {
  const known = packages.get(directory);
  if (known !== undefined) return known;
  const read = Parse(packageSchema, JSON.parse(readFileSync(join(directory, "package.json"), "utf8")));
  if (directory.includes(`${sep}node_modules${sep}`)) packages.set(directory, read);
  return read;
}

let ofInterface: unknown;

/** Kindstack's own code does not change while it runs; the dependencies of its dependencies have no part in a declaration. */
function interfaceDigest(): unknown {
  ofInterface ??= INTERFACE.map((folder) => [
    filesBelow(folder).map(digestOf),
    importedDigests(folder, { deep: false }),
  ]);
  return ofInterface;
}
