import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import Type from "typebox";
import { Compile } from "typebox/compile";
import { foldersFrom } from "../../providers/folders";
import type { AnyKind } from "../../stacks/contract/kind";
import { parseJson } from "../text/json";

export const neededPluginSchema = Type.Object({
  name: Type.String(),
  version: Type.Optional(Type.String()),
  /** The package that needs it. */
  package: Type.String(),
  /** Where the engine finds it; absent where it does not. */
  file: Type.Optional(Type.String()),
});

type NeededPlugin = Type.Static<typeof neededPluginSchema>;

const packageSchema = Type.Object({
  name: Type.Optional(Type.String()),
  version: Type.Optional(Type.String()),
  dependencies: Type.Optional(Type.Record(Type.String(), Type.String())),
  peerDependencies: Type.Optional(Type.Record(Type.String(), Type.String())),
  pulumi: Type.Optional(
    Type.Object({
      resource: Type.Optional(Type.Boolean()),
      name: Type.Optional(Type.String()),
      version: Type.Optional(Type.String()),
    }),
  ),
});
const isPackage = Compile(packageSchema);
type Package = Type.Static<typeof packageSchema>;

/**
 * The plugins that a kind's programs need: of the SDK packages that its package depends on, and of the package itself. Both
 * say so in package.json, by `pulumi: { resource: true }`, as Pulumi's own tools read it.
 */
export function neededPlugins(
  { directory, capabilities }: Pick<AnyKind, "directory" | "capabilities">,
  environment: NodeJS.ProcessEnv,
): NeededPlugin[] {
  if (!capabilities.sdkRuntime) return []; // a plain program has no use for one
  const root = packageFolder(directory);
  const own = root === undefined ? undefined : readPackage(root);
  if (root === undefined || own === undefined) return [];
  const names = Object.keys({ ...own.dependencies, ...own.peerDependencies });
  const all = [own, ...names.flatMap((name) => installedPackage(root, name) ?? [])];
  const needed = all.flatMap(({ name = "", version, pulumi }) =>
    pulumi?.resource ? { package: name, ...pluginOf(name, version, pulumi) } : [],
  );
  return needed.map((plugin) => {
    const file = pluginFile(plugin, environment);
    return { ...plugin, ...(file !== undefined && { file }) };
  });
}

function pluginOf(packageName: string, packageVersion: string | undefined, said: NonNullable<Package["pulumi"]>) {
  const version = said.version ?? packageVersion;
  // A package under development has a version that no plugin has.
  const isOne = version !== undefined && version !== "0.0.0" && !version.includes("${");
  return {
    name: said.name ?? packageName.replace(/^@[^/]+\//, ""),
    ...(isOne && { version: version.replace(/^v/, "") }),
  };
}

/**
 * The environment in which plugins are looked for: what is in a folder `plugins` of a kind's package is found as what is on
 * the PATH is, in a package, an image and a clone alike. The folder may be made later, while kinds are edited.
 */
export function withPluginFolders(
  kinds: readonly Pick<AnyKind, "directory">[],
  environment: NodeJS.ProcessEnv,
): NodeJS.ProcessEnv {
  const folders = kinds.flatMap(({ directory }) => {
    const root = packageFolder(directory);
    return root === undefined ? [] : [join(root, "plugins")];
  });
  const own = [...new Set(folders)];
  if (own.length === 0) return environment;
  return { ...environment, PATH: [...own, ...(environment.PATH ? [environment.PATH] : [])].join(delimiter) };
}

/** Searches as Pulumi does: on the PATH, then in Pulumi's own folder by version. */
function pluginFile({ name, version }: { name: string; version?: string }, environment: NodeJS.ProcessEnv) {
  const program = `pulumi-resource-${name}`;
  const folders = (environment.PATH ?? "").split(delimiter).filter(Boolean);
  if (version !== undefined) {
    const home = environment.PULUMI_HOME ?? join(homedir(), ".pulumi");
    folders.push(join(home, "plugins", `resource-${name}-v${version}`));
  }
  return folders.map((folder) => join(folder, program)).find((file) => existsSync(file));
}

function packageFolder(folder: string): string | undefined {
  return foldersFrom(folder).find((above) => existsSync(join(above, "package.json")));
}

function readPackage(folder: string): Package | undefined {
  const file = join(folder, "package.json");
  return existsSync(file) ? parseJson(isPackage, readFileSync(file, "utf8")) : undefined;
}

function installedPackage(folder: string, name: string): Package | undefined {
  const found = foldersFrom(folder).flatMap((above) => readPackage(join(above, "node_modules", name)) ?? []);
  return found[0];
}
