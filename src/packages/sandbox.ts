import { existsSync, readdirSync, realpathSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { foldersFrom } from "../../providers/folders";
import type { AnyKind } from "../../stacks/contract/kind";
import { packageRoot } from "../package";

/** What the process of a package may do besides to compute and to use the network. */
export interface PackageRights {
  writable: readonly string[];
  /** Whether native add-ons may be loaded: they are held to none of this. */
  addons: boolean;
}

/** Needed by any process, and of no secret. */
const INHERITED = /^(PATH|HOME|TZ|LANG|LC_\w+|NODE_ENV|NODE_EXTRA_CA_CERTS|SSL_CERT_(FILE|DIR)|(HTTPS?|NO)_PROXY)$/i;
/** The operator's own, whatever a package declares. */
const OWN = /^(PSQL_|PG[A-Z]|KUBE|KINDSTACK_|PULUMI_|NODE_OPTIONS$|LD_)/;

/** The environment of a package: of the operator's variables, those that its kinds declare. */
export function packageEnvironment(
  kinds: readonly Pick<AnyKind, "capabilities">[],
  environment: NodeJS.ProcessEnv,
): NodeJS.ProcessEnv {
  const declared = new Set(kinds.flatMap(({ capabilities }) => Object.keys(capabilities.environment ?? {})));
  const isGiven = (name: string) => INHERITED.test(name) || (declared.has(name) && !OWN.test(name));
  return Object.fromEntries(Object.entries(environment).filter(([name]) => isGiven(name)));
}

/** Options of Node.js for the process of a package. @param memoryMib of its heap */
export function nodeOptions(entry: string, memoryMib: number, { writable, addons }: PackageRights): string[] {
  // With a star, Node.js finds the package.json of a folder as well.
  const real = (path: string) => (existsSync(path) ? [path, realpathSync(path)] : [path]).flatMap(withContents);
  const readable = new Set([...readableFolders(entry), ...writable].flatMap(real));
  return [
    `--max-old-space-size=${memoryMib}`,
    "--max-semi-space-size=1", // MiB: it would take 30 MiB more for garbage
    "--optimize-for-size", // 5 MiB less
    "--v8-pool-size=1", // threads that compile and collect beside it: 1 MiB less
    "--permission",
    ...[...readable].map((path) => `--allow-fs-read=${path}`),
    ...writable.flatMap(real).map((path) => `--allow-fs-write=${path}`),
    ...(addons ? ["--allow-addons"] : []),
    "--disable-warning=SecurityWarning",
  ];
}

function withContents(path: string): string[] {
  return existsSync(path) && statSync(path).isDirectory() ? [path, join(path, "*")] : [path];
}

/** The package's folder, Kindstack's code, and all packages that both may import. */
function readableFolders(entry: string): string[] {
  const own = [join(packageRoot, "dist"), ...modulesAbove(packageRoot)];
  return [folderOf(entry), ...modulesAbove(dirname(entry)), ...modulesAbove(realpathSync(dirname(entry))), ...own];
}

/** The folder with its package.json; of kinds without one, the folder around theirs, as they may import from each other. */
function folderOf(entry: string): string {
  const own = dirname(entry);
  return foldersFrom(own).find((folder) => existsSync(join(folder, "package.json"))) ?? dirname(own);
}

/** The `node_modules` of a folder and of those above it, with the packages of a workspace that these link to. */
function modulesAbove(folder: string): string[] {
  const modules = foldersFrom(folder).map((above) => join(above, "node_modules"));
  return modules.filter((path) => existsSync(path)).flatMap((path) => [path, ...linkedIn(path)]);
}

function linkedIn(modules: string): string[] {
  return readdirSync(modules, { withFileTypes: true }).flatMap((entry) => {
    const path = join(modules, entry.name);
    if (entry.isSymbolicLink()) return existsSync(path) ? [realpathSync(path)] : [];
    return entry.isDirectory() && entry.name.startsWith("@") ? linkedIn(path) : [];
  });
}
