import { readdirSync, readFileSync, statSync } from "node:fs";
import path from "node:path";
import { packageRoot } from "../package";
import { type NewKindNames, namesOf } from "./names";

export type Files = Record<string, string>;

/** What a kind's folder in this repository does not need. */
const OF_A_PACKAGE = ["package.json", "tsconfig.json", "tsconfig.build.json", "src/index.ts"];

/** Names in a provider's module that its class cannot have. */
const PROVIDERS_WORDS = [
  "DynamicProvider",
  "DynamicResource",
  "JSON",
  "Promise",
  "RetryableError",
  "Stored",
  "TerminalError",
];

/** What the templates import, and where this repository has it. */
const modulesOf = ({ folder }: NewKindNames): Record<string, string> => ({
  kindstack: "stacks/contract/index",
  "kindstack/providers/kubernetes": "providers/kubernetes/index",
  "kindstack/testing": "src/testing/index",
  [`../src/${folder}/kind`]: `stacks/kinds/${folder}/kind`,
});

export function packageFiles(names: NewKindNames, versions: Readonly<Record<string, string>>): Files {
  const { kindstack, ...devDependencies } = versions;
  const { "package.json": manifest = "", ...files } = filledTemplate("kind", names);
  const dependencies = { peerDependencies: { kindstack }, devDependencies };
  return {
    "package.json": `${JSON.stringify({ ...JSON.parse(manifest), ...dependencies }, null, 2)}\n`,
    ".gitignore": "node_modules/\ndist/\n.kindstack/\n",
    ...files,
  };
}

export function furtherFiles(names: NewKindNames): Files {
  const files = Object.entries(filledTemplate("kind", names));
  return Object.fromEntries(files.filter(([file]) => !OF_A_PACKAGE.includes(file)));
}

/** A kind's folder in this repository, with its test. */
export function folderFiles(names: NewKindNames): Files {
  const folder = `stacks/kinds/${names.folder}`;
  const modules = modulesOf(names);
  return Object.fromEntries(
    Object.entries(furtherFiles(names)).map(([file, text]) => {
      const target = file.startsWith("test/")
        ? `test/${folder}/kind.test.ts`
        : `${folder}/${path.posix.basename(file)}`;
      const adapted = text.replace(/(?<= from ")[^"]+/g, (specifier) => {
        const module = modules[specifier];
        return module === undefined ? specifier : path.posix.relative(path.posix.dirname(target), module);
      });
      return [target, withSortedImports(adapted)];
    }),
  );
}

/**
 * A dynamic provider in a package, with a test of each method. The provider is complete: its system is a folder, and
 * the first test needs no preparation.
 */
export function providerFiles(names: NewKindNames, packageName: string): Files {
  const kind = PROVIDERS_WORDS.includes(names.kind) ? `${names.kind}Resource` : names.kind;
  return filledTemplate("provider", { ...names, kind }, packageName);
}

/** The imports as the formatter of this repository sorts them: packages, then files by the longest way up. */
export function withSortedImports(text: string): string {
  return text.replace(/^(import [^;]*;\n)+/, (imports) =>
    imports
      .split(/(?<=;\n)/)
      .sort((a, b) => (sortKey(a) < sortKey(b) ? -1 : 1))
      .join(""),
  );
}

function sortKey(line: string): string {
  const specifier = / from "(.*)"/.exec(line)?.[1] ?? "";
  return specifier.startsWith(".") ? specifier : ` ${specifier}`;
}

/** The files of a folder of `templates/`, whose kind or resource is called `NewKind`, in the package `new-package`. */
function filledTemplate(template: "kind" | "provider", names: NewKindNames, packageName = ""): Files {
  const placeholders = Object.entries({ ...namesOf("NewKind", "example.com"), packageName: "new-package" });
  const values: Record<string, string> = { ...names, packageName };
  const words = new Map(placeholders.map(([name, placeholder]) => [placeholder, values[name] ?? ""]));
  words.set("NEW_KIND", names.folder.replaceAll("-", "_").toUpperCase());
  const word = new RegExp([...words.keys()].join("|"), "g");
  const fill = (text: string) => text.replace(word, (placeholder) => words.get(placeholder) ?? placeholder);

  const folder = path.join(packageRoot, "templates", template);
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((file) => statSync(path.join(folder, file)).isFile())
    .sort();
  return Object.fromEntries(
    files.map((file) => {
      const lines = fill(readFileSync(path.join(folder, file), "utf8")).split("\n");
      return [fill(file.replaceAll(path.sep, "/")), lines.map(wrapped).join("\n")];
    }),
  );
}

/** The head of a function as the formatter breaks it, where it has more than 120 characters. */
function wrapped(line: string): string {
  if (line.length <= 120) return line;
  return line.replace(/^(export function \w+)\((.*)\)(: .*)$/, (_, head: string, parameters: string, rest: string) => {
    const lines = parameters.split(/, (?![^{]*\})/).map((parameter) => `  ${parameter},\n`);
    return `${head}(\n${lines.join("")})${rest}`;
  });
}
