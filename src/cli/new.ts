import fs from "node:fs";
import path from "node:path";
import { Command } from "commander";
import { foldersFrom } from "../../providers/folders";
import { devDependencies, packageRoot, packageVersion } from "../package";
import { type NewKindNames, namesOf } from "../scaffold/names";
import {
  type Files,
  folderFiles,
  furtherFiles,
  packageFiles,
  providerFiles,
  withSortedImports,
} from "../scaffold/templates";
import { orWrongUsage } from "./parse-options";

interface NewKindOptions {
  group: string;
  plural?: string;
  package: boolean;
  dir?: string;
}

/** The list of built-in kinds, to which a kind in this repository is added. */
const INDEX = "stacks/kinds/index.ts";
const PACKAGE_INDEX = "src/index.ts";

interface Manifest {
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
}

export function newCommand(): Command {
  return new Command("new")
    .description("write the files of a new kind, or of a dynamic provider")
    .addHelpText(
      "after",
      `
Examples:
  kindstack new kind BackupPolicy --package --group example.com
  kindstack new provider Bucket`,
    )
    .addCommand(newProviderCommand())
    .addCommand(
      new Command("kind")
        .description(
          "write schema, program, status, sample and tests of a kind: a package, or a folder of Kindstack's own",
        )
        .argument("<name>", "the kind's name, a noun in the singular such as BackupPolicy")
        .option("--group <domain>", "the API group, a domain of yours", "example.com")
        .option("--plural <word>", "the name in URLs and for kubectl (default: by the rules of English)")
        .option("--package", "a package of its own, in place of a folder in a clone of Kindstack", false)
        .option("--dir <folder>", "the package's folder, or the clone (default: a new folder, or this one)")
        .addHelpText(
          "after",
          `
Nothing that exists is overwritten. To a package that has a kind, one more is added; to a clone's list of kinds, too.

Examples:
  kindstack new kind Notice --package        # ./notice, with package.json
  kindstack new kind Notice --package --dir .   # one more, where the folder is a package of kinds
  kindstack new kind Notice                  # stacks/kinds/notice, in a clone of Kindstack`,
        )
        .action((name: string, options: NewKindOptions, command: Command) => {
          const names = orWrongUsage(command, () => namesOf(name, options.group, options.plural));
          process.stdout.write(options.package ? newPackage(names, options.dir) : newFolder(names, options.dir ?? "."));
        }),
    );
}

function newProviderCommand(): Command {
  return new Command("provider")
    .description("write a dynamic provider and its tests into a package; it works as it is, on files in a folder")
    .argument("<name>", "the name of its resources, a noun in the singular such as Bucket")
    .option("--dir <folder>", "the package's folder", ".")
    .addHelpText(
      "after",
      `
Nothing that exists is overwritten. docs/write-a-provider.md says what each method must do.

Example:
  kindstack new provider Bucket              # src/bucket.ts and test/bucket.test.ts`,
    )
    .action((name: string, { dir }: { dir: string }, command: Command) => {
      const names = orWrongUsage(command, () => namesOf(name, "example.com"));
      process.stdout.write(newProvider(names, dir));
    });
}

function newProvider(names: NewKindNames, dir: string): string {
  const manifest = path.join(dir, "package.json");
  if (!fs.existsSync(manifest)) {
    throw new Error(`${path.resolve(dir)} is no package: kindstack new kind <name> --package makes one`);
  }
  const { name } = JSON.parse(fs.readFileSync(manifest, "utf8")) as { name?: string };
  if (!name) throw new Error(`${manifest}: name: must be set, as states record it to find the provider`);
  writeNew(dir, providerFiles(names, name));
  const module = `src/${names.folder}.ts`;
  return `${module}: a provider of ${names.kind} resources

Next:
  npm test
  replace the files in ${module} by your own system
  name it in the kind: import * as ${names.constant} from "../${names.folder}" and capabilities: { providers: [${names.constant}] }
`;
}

function newPackage(names: NewKindNames, dir = names.folder): string {
  if (fs.existsSync(path.join(dir, PACKAGE_INDEX))) return furtherKind(names, dir);
  // The kind is compiled and tested with the same versions as this package.
  const tools = ["@types/node", "typescript", "vitest"].map((tool) => [tool, devDependencies[tool] ?? "latest"]);
  const { "package.json": manifest = "", ...files } = packageFiles(names, {
    kindstack: `^${packageVersion}`,
    ...Object.fromEntries(tools),
  });
  writeNew(dir, { "package.json": withLocalKindstack(manifest, dir), ...files });
  return `${dir}: the kind ${names.kind}

Next:
${dir === "." ? "" : `  cd ${dir}\n`}  npm install
  npm test
  npm run dev           # a cluster on this machine that serves it
`;
}

/** Adds another kind to a package: a folder and test, an export, and a sample beside the existing ones. */
function furtherKind(names: NewKindNames, dir: string): string {
  const { "sample.yaml": sample = "", ...files } = furtherFiles(names);
  writeNew(dir, files);
  fs.appendFileSync(path.join(dir, PACKAGE_INDEX), `export { ${names.constant} } from "./${names.folder}/kind";\n`);
  const samples = path.join(dir, "sample.yaml");
  fs.appendFileSync(samples, fs.existsSync(samples) ? `---\n${sample}` : sample);
  return `${path.join(dir, "src", names.folder)}: the kind ${names.kind}, in the same package

Next:
  npm test
  npm run dev           # a cluster on this machine that serves all kinds of the package
`;
}

/** A package takes the Kindstack that a folder above it has from a file, or the clone that writes it: a registry may have none, or another's. */
function withLocalKindstack(manifest: string, dir: string): string {
  const source = sourceAbove(path.resolve(dir)) ?? (isInstalled ? undefined : packageRoot);
  if (source === undefined) return manifest;
  const parsed = JSON.parse(manifest) as Manifest;
  parsed.devDependencies = { kindstack: `file:${path.relative(path.resolve(dir), source)}`, ...parsed.devDependencies };
  return `${JSON.stringify(parsed, null, 2)}\n`;
}

/** The file or folder from which a folder above this one has Kindstack; `undefined` where none has it, or from a registry. */
function sourceAbove(dir: string): string | undefined {
  for (const folder of foldersFrom(path.dirname(dir))) {
    const file = path.join(folder, "package.json");
    if (!fs.existsSync(file)) continue;
    const { dependencies, devDependencies: tools } = JSON.parse(fs.readFileSync(file, "utf8")) as Manifest;
    const source = dependencies?.kindstack ?? tools?.kindstack;
    if (source === undefined) continue;
    return source.startsWith("file:") ? path.resolve(path.dirname(file), source.slice("file:".length)) : undefined;
  }
  return undefined;
}

/** Whether this is a package that npm has installed, rather than a clone. */
const isInstalled = packageRoot.includes(`${path.sep}node_modules${path.sep}`);

function newFolder(names: NewKindNames, clone: string): string {
  const index = path.join(clone, INDEX);
  if (!fs.existsSync(index)) {
    throw new Error(`${path.resolve(clone)} is no clone of Kindstack: for a package of its own, add --package`);
  }
  writeNew(clone, folderFiles(names));
  fs.writeFileSync(index, withKind(fs.readFileSync(index, "utf8"), names));
  return `stacks/kinds/${names.folder}: the kind ${names.kind}

Next:
  npm run build
  npx vitest run --project unit test/stacks/kinds/${names.folder}
  npx kindstack install --print --set postgresTables= > deploy/install.yaml
  describe it in docs/kinds.md and run npm test
`;
}

function withKind(text: string, { folder, constant }: NewKindNames): string {
  const added = text.replace(/(AnyKind\[\] = \[[^\]]*)\]/, `$1, ${constant}]`);
  if (added === text) throw new Error(`${INDEX}: add the kind to its list`);
  return withSortedImports(`import { ${constant} } from "./${folder}/kind";\n${added}`);
}

function writeNew(folder: string, files: Files): void {
  const existing = Object.keys(files).filter(
    (file) => file !== "package.json" && fs.existsSync(path.join(folder, file)),
  );
  if (existing.length > 0) throw new Error(`nothing was written, since these exist: ${existing.join(", ")}`);
  for (const [file, text] of Object.entries(files)) {
    const target = path.join(folder, file);
    fs.mkdirSync(path.dirname(target), { recursive: true });
    if (file === "package.json" && fs.existsSync(target)) fs.writeFileSync(target, withManifest(target, text));
    else fs.writeFileSync(target, text);
  }
}

/** An existing package.json keeps its name and its dependencies. */
function withManifest(file: string, text: string): string {
  const existing = JSON.parse(fs.readFileSync(file, "utf8")) as Record<string, Record<string, string>>;
  const added = JSON.parse(text) as Record<string, Record<string, string>>;
  // Where the kind is installed, Kindstack is there to run it; in the package, it is only for development.
  const { kindstack, ...dependencies } = existing.dependencies ?? {};
  const merged = {
    ...added,
    name: existing.name ?? added.name,
    ...(Object.keys(dependencies).length > 0 && { dependencies }),
    devDependencies: { ...added.devDependencies, ...(kindstack && { kindstack }), ...existing.devDependencies },
  };
  return `${JSON.stringify(merged, null, 2)}\n`;
}
