import fs from "node:fs";
import path from "node:path";

/** The folder of this package's package.json: the same one for the sources and for what they are compiled to. */
export const packageRoot: string = findRoot(__dirname);

/** The version in package.json. */
export function packageVersion(): string {
  const manifest = JSON.parse(fs.readFileSync(path.join(packageRoot, "package.json"), "utf8")) as { version: string };
  return manifest.version;
}

function findRoot(directory: string): string {
  if (fs.existsSync(path.join(directory, "package.json"))) return directory;
  const parent = path.dirname(directory);
  if (parent === directory) throw new Error("no package.json above the code");
  return findRoot(parent);
}
