import fs from "node:fs";
import path from "node:path";

/** The folder of Pulumi.yaml; compiled, this file lies in dist/stacks/up. */
export const ROOT = path.resolve(__dirname, "../../..");

export const { version, engines } = JSON.parse(fs.readFileSync(path.join(ROOT, "package.json"), "utf8")) as {
  version: string;
  engines: { node: string };
};
