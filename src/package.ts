import path from "node:path";

/** What this package's package.json says; sources and what they are compiled to find it by the package's own name. */
export const { version: packageVersion, devDependencies = {} } = require("kindstack/package.json") as {
  version: string;
  devDependencies?: Record<string, string>;
};

/** The folder of package.json. */
export const packageRoot: string = path.dirname(require.resolve("kindstack/package.json"));
