import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, isAbsolute, join, resolve } from "node:path";
import { errorMessageOf, TerminalError } from "../../providers/errors";
import { listItems } from "../../providers/list-items";
import { type AnyKind, kindName } from "../contract/kind";
import { findKind, kindsNamed } from "../contract/kind-name";
import { kinds as builtIn } from "./index";
import { kindsIn } from "./module";

/** The kinds that the operator serves, as in `--kinds`; the default of every command. */
const KINDS_VARIABLE = "KINDSTACK_KINDS";
/** A folder of folders of kinds, such as the image's; they are served besides the built-in ones. */
const DIRECTORY_VARIABLE = "KINDSTACK_KINDS_DIRECTORY";
/** The entry module of a folder without package.json: the first that exists. */
const ENTRIES = ["index.js", "index.cjs", "index.mjs", "index.ts", "kind.js", "kind.ts"];

/** A kind, or a folder or package of kinds, that cannot be served. */
interface KindProblem {
  /** The kind's name, or the folder or package. */
  name: string;
  message: string;
}

export interface LoadedKinds {
  /** What chose them, see {@link loadKinds}; empty for all. */
  words: readonly string[];
  kinds: readonly AnyKind[];
  /** The modules that export the kinds which are not built in. */
  entries: readonly string[];
  /** These and all that they import, without what lies in `node_modules`. */
  files: readonly string[];
  /** Of those that were chosen and are not among the kinds. */
  problems: readonly KindProblem[];
}

interface Source {
  /** As a person named it. */
  name: string;
  kinds: readonly AnyKind[];
}

/**
 * The kinds that words choose: names of built-in kinds, `all` of those, folders or files (`./notice`), and packages
 * (`@acme/notice`). Without words, what the environment names, else all built-in kinds and those of the folder of kinds.
 *
 * A folder's or package's kinds are what its module exports of what `defineKind` returned. TypeScript is compiled as it is
 * loaded, without a check of its types.
 *
 * @param directory where folders and packages are looked for
 * @throws RangeError for a word that is none of these, or may be more than one kind
 */
export function loadKinds(given: readonly string[] = [], directory = process.cwd()): LoadedKinds {
  const before = new Set(Object.keys(require.cache));
  const loading = choosing(given, directory);
  let step = loading.next();
  while (!step.done) step = loading.next(exportsOf(step.value.entry));
  const read = Object.keys(require.cache).filter((file) => !before.has(file) && !/[/\\]node_modules[/\\]/.test(file));
  const { entries } = step.value;
  return { ...step.value, files: entries.length === 0 ? [] : [...new Set([...entries, ...read])] };
}

function exportsOf(entry: string): Loaded {
  try {
    return kindsIn(entry);
  } catch (error) {
    return { error };
  }
}

/** {@link loadKinds}, with modules that another process evaluates. @param load throws why a module cannot be loaded */
export async function loadKindsWith(
  load: (entry: string, name: string) => Promise<EntryKinds>,
  given: readonly string[] = [],
): Promise<Omit<LoadedKinds, "files">> {
  const loading = choosing(given, process.cwd());
  let step = loading.next();
  while (!step.done) {
    const { entry, name } = step.value;
    step = loading.next(await load(entry, name).catch((error: unknown) => ({ error })));
  }
  return step.value;
}

/** The kinds of a module, and why others of it cannot be served. */
export interface EntryKinds {
  kinds: readonly AnyKind[];
  problems: readonly string[];
}

/** What a module exports, or why it cannot be loaded. */
type Loaded = EntryKinds | { error: unknown };
/** Asks for what modules export. */
type Loading<Result> = Generator<{ entry: string; name: string }, Result, Loaded>;

function* choosing(given: readonly string[], directory: string): Loading<Omit<LoadedKinds, "files">> {
  const words = given.length > 0 ? given : listItems(process.env[KINDS_VARIABLE] ?? "");
  const problems: KindProblem[] = [];
  const entries: string[] = [];
  function* load(name: string, findEntry: () => string): Loading<Source> {
    try {
      const entry = findEntry();
      entries.push(entry);
      const loaded = yield { entry, name };
      if ("error" in loaded) throw loaded.error;
      problems.push(...loaded.problems.map((message) => ({ name, message })));
      return { name, kinds: loaded.kinds };
    } catch (error) {
      problems.push({ name, message: errorMessageOf(error) });
      return { name, kinds: [] };
    }
  }
  const mounted: Source[] = [];
  for (const folder of foldersIn(process.env[DIRECTORY_VARIABLE])) {
    mounted.push(yield* load(folder, () => entryOf(folder)));
  }
  const known = [...builtIn, ...mounted.flatMap(({ kinds }) => kinds)];
  const named = new Set<AnyKind>();
  const others: Source[] = [];
  for (const word of words) {
    if (word === "all") for (const kind of builtIn) named.add(kind);
    else if (isPath(word)) others.push(yield* load(word, () => entryOf(resolve(directory, word))));
    else if (isPackage(word, directory, known)) others.push(yield* load(word, () => packageEntry(word, directory)));
    else named.add(findKind(known, word));
  }
  const kinds =
    words.length > 0
      ? distinct([{ name: "Kindstack", kinds: known.filter((kind) => named.has(kind)) }, ...others], problems)
      : distinct([{ name: "Kindstack", kinds: builtIn }, ...mounted], problems);
  return { words, kinds, entries, problems };
}

/** All kinds that were chosen. */
export function requireKinds({ kinds, problems }: LoadedKinds): readonly AnyKind[] {
  if (problems.length === 0) return kinds;
  throw new TerminalError("Misconfigured", problems.map(describeProblem).join("\n"));
}

/** Words that mean the same in every directory, for another process. */
export function portableWords(words: readonly string[]): string[] {
  const directory = process.cwd();
  return words.map((word) => {
    if (isPath(word)) return resolve(word);
    return isPackage(word, directory, builtIn) ? packageEntry(word, directory) : word;
  });
}

/** `./notice: it exports no kind` */
export function describeProblem({ name, message }: KindProblem): string {
  return `${name}: ${message}`;
}

/** Of kinds with the same names, the first stays: two controllers would each undo the other's work. */
function distinct(sources: readonly Source[], problems: KindProblem[]): AnyKind[] {
  const kinds = new Map<AnyKind, string>();
  for (const { name: source, kinds: found } of sources) {
    for (const kind of found) {
      const same = [...kinds].find(
        ([other]) =>
          other !== kind && other.group === kind.group && (other.plural === kind.plural || other.kind === kind.kind),
      );
      if (same === undefined) kinds.set(kind, source);
      else {
        const [other, first] = same;
        problems.push({
          name: `${kindName(kind)} (${kind.kind})`,
          message: `${source} declares it, and so does ${first}, whose ${kindName(other)} is taken; give one of them another name or group`,
        });
      }
    }
  }
  return [...kinds.keys()];
}

function isPath(word: string): boolean {
  return isAbsolute(word) || /^\.\.?([/\\]|$)/.test(word);
}

/** @param kinds whose names are no packages', whatever is installed: there is a client of memcached */
function isPackage(word: string, directory: string, kinds: readonly AnyKind[]): boolean {
  if (!/^(@[\w.-]+\/)?[\w.-]+$/.test(word)) return false;
  if (word === "all" || kindsNamed(kinds, word).length > 0) return false;
  return (createRequire(join(directory, "_")).resolve.paths(word) ?? []).some((folder) =>
    existsSync(join(folder, word)),
  );
}

function packageEntry(name: string, directory: string): string {
  return createRequire(join(directory, "_")).resolve(name);
}

function entryOf(path: string): string {
  if (!existsSync(path)) throw new Error(`there is no ${path}`);
  if (statSync(path).isFile()) return path;
  const manifest = join(path, "package.json");
  const { main } = existsSync(manifest) ? (JSON.parse(readFileSync(manifest, "utf8")) as { main?: string }) : {};
  if (main !== undefined) {
    const entry = resolve(path, main);
    if (!existsSync(entry)) throw new Error(`${entry}, the main of its package.json, does not exist: build it first`);
    return entry;
  }
  const entry = ENTRIES.map((file) => join(path, file)).find((file) => existsSync(file));
  if (entry === undefined) throw new Error(`${path} has neither a package.json with main, nor ${ENTRIES.join(", ")}`);
  return entry;
}

function foldersIn(directory: string | undefined): string[] {
  if (!directory || !existsSync(directory)) return [];
  return readdirSync(directory)
    .filter((name) => !name.startsWith("."))
    .sort()
    .map((name) => join(directory, name));
}

/** Where a kind's sample lies: in its folder or, compiled, in a folder above it in the same package. */
export function sampleOf({ directory }: AnyKind): string | undefined {
  for (let folder = directory; ; folder = dirname(folder)) {
    const file = join(folder, "sample.yaml");
    if (existsSync(file)) return file;
    if (existsSync(join(folder, "package.json")) || dirname(folder) === folder) return undefined;
  }
}
