import path from "node:path";

/** What this package's package.json says; sources and what they are compiled to find it by the package's own name. */
const manifest = require("kindstack/package.json") as {
  version: string;
  engines: { node: string };
  dependencies: Record<string, string>;
  devDependencies?: Record<string, string>;
};

export const { version: packageVersion, dependencies, devDependencies = {} } = manifest;

/** The versions of Node.js that it runs on, as `>=22.19`. */
export const nodeRange = manifest.engines.node;

/** The folder of package.json. */
export const packageRoot: string = path.dirname(require.resolve("kindstack/package.json"));
